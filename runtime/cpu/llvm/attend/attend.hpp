// An Attend op -> LLVM functions over one tile; driver.cpp walks the tiles and calls them.
#pragma once

#include "compiler/ir/program.hpp"
#include "runtime/cpu/llvm/attend/frame.hpp"
#include "runtime/cpu/llvm/attend/microkernel.hpp"
#include "runtime/cpu/llvm/attend/panels.hpp"
#include "runtime/cpu/llvm/jit/emitter.hpp"

namespace lacuna::host {

/// What the functions depend on that have no formula of a spec in them.
struct CommonKey {
  Shape shape;
  DType dtype = DType::kBF16;
  Weights weights = Weights::kSoftmax;
  bool scales_v = false;
  auto operator<=>(const CommonKey&) const = default;
};

/// Both write functions of Kernels, named like its members, into the emitter's module: those with
/// formulas of the spec, and the others.
void emit_own(Emitter& e, const Attend& attend, const Shape& shape);
void emit_common(Emitter& e, const CommonKey& key);

// Its parts.
void emit_classify(Emitter& e, const Attend& attend);
void emit_classify_row(Emitter& e, const Expr& mask);
void emit_gate(Emitter& e, const Gate& gate);
void emit_sink(Emitter& e, const Expr& sink);
void emit_scores(Emitter& e, const Attend& attend, const Shape& shape, bool partial);
/// `rounds`: weights become e4m3 of kWeightRange * weight.
void emit_softmax(Emitter& e, const Shape& shape, bool rounds);
/// Weights without a denominator, under the same name: sigmoids of the logits, or these themselves.
void emit_plain_weights(Emitter& e, const Shape& shape, Weights weights);
void emit_accumulate(Emitter& e, const Shape& shape, Terms terms);
void emit_pack_q(Emitter& e, const Shape& shape, DType dtype);
void emit_pack_k(Emitter& e, const Shape& shape, DType dtype);
void emit_pack_v(Emitter& e, const Shape& shape, DType dtype);
void emit_store_o(Emitter& e, const Shape& shape, DType dtype, bool scales_v);

}  // namespace lacuna::host
