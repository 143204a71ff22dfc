#include "runtime/cpu/llvm/attend/attend.hpp"

#include <cstddef>

#include "runtime/cpu/llvm/attend/frame_access.hpp"
#include "runtime/cpu/llvm/jit/lower_expr.hpp"

namespace lacuna::host {

using llvm::Value;

void emit_own(Emitter& e, const Attend& attend, const Shape& shape) {
  emit_classify(e, attend);
  if (attend.pairs) emit_classify_row(e, attend.mask);
  if (attend.gate) emit_gate(e, *attend.gate);
  if (!attend.sink.empty()) emit_sink(e, attend.sink);
  emit_scores(e, attend, shape, /*partial=*/false);
  emit_scores(e, attend, shape, /*partial=*/true);
}

void emit_common(Emitter& e, const CommonKey& key) {
  if (has_denominator(key.weights)) {
    emit_softmax(e, key.shape, key.scales_v);
  } else {
    emit_plain_weights(e, key.shape, key.weights);
  }
  emit_accumulate(e, key.shape, Terms::kAll);
  emit_accumulate(e, key.shape, Terms::kNonzero);
  emit_pack_q(e, key.shape, key.dtype);
  emit_pack_k(e, key.shape, key.dtype);
  emit_pack_v(e, key.shape, key.dtype);
  emit_store_o(e, key.shape, key.dtype, key.scales_v);
}

void emit_classify(Emitter& e, const Attend& attend) {
  llvm::Function* function = e.begin_function("classify", e.i32(), {e.ir.getPtrTy()});
  const ExprScope scope = FrameAccess(e, function->getArg(0)).tile_scope();
  const auto decide = [&](const Expr& expr) -> Value* {
    return expr.empty() ? e.ir.getTrue() : lower_expr(e, expr, scope);
  };
  Value* must = decide(attend.classifier.must);
  Value* may = decide(attend.classifier.may);
  const auto code = [&](TileClass c) { return e.constant(static_cast<int>(c)); };
  Value* partial = e.ir.CreateSelect(may, code(TileClass::kPartial), code(TileClass::kEmpty));
  e.ir.CreateRet(e.ir.CreateSelect(must, code(TileClass::kFull), partial));
}

/// Lanes behind the last key stand for it, which changes nothing.
void emit_classify_row(Emitter& e, const Expr& mask) {
  llvm::Function* function = e.begin_function("classify_row", e.i32(), {e.ir.getPtrTy(), e.i32()});
  const FrameAccess frame(e, function->getArg(0));
  Value *first = frame.word(offsetof(Frame, k0)), *last = frame.word(offsetof(Frame, k1));
  Value* keys = e.ir.CreateAdd(e.ir.CreateSub(last, first), e.constant(1));
  ExprScope scope = frame.tile_scope();
  scope[Variable::kQ] = function->getArg(1);
  const auto look = [&](Value* begin, const Emitter::Values& found) -> Emitter::Values {
    Value* start = e.ir.CreateAdd(first, e.ir.CreateTrunc(begin, e.i32()));
    Value* key = e.ir.CreateAdd(e.splat(start), e.lane_numbers());
    Value* end = e.splat(last);
    scope[Variable::kK] = e.ir.CreateSelect(e.ir.CreateICmpSLT(key, end), key, end);
    Value* seen = e.splat(lower_expr(e, mask, scope));
    return {e.ir.CreateOr(found[0], e.ir.CreateOrReduce(seen)),
            e.ir.CreateAnd(found[1], e.ir.CreateAndReduce(seen))};
  };
  const Emitter::Values found = e.loop(e.index(0), e.ir.CreateSExt(keys, e.ir.getInt64Ty()),
                                       e.width, {e.ir.getFalse(), e.ir.getTrue()}, look);
  const auto code = [&](TileClass c) { return e.constant(static_cast<int>(c)); };
  Value* cut = e.ir.CreateSelect(found[0], code(TileClass::kPartial), code(TileClass::kEmpty));
  e.ir.CreateRet(e.ir.CreateSelect(found[1], code(TileClass::kFull), cut));
}

void emit_gate(Emitter& e, const Gate& gate) {
  llvm::Function* function = e.begin_function("gate", e.i32(), {e.ir.getPtrTy(), e.f32(), e.f32()});
  ExprScope scope = FrameAccess(e, function->getArg(0)).tile_scope();
  scope[Variable::kTileMax] = function->getArg(1);
  scope[Variable::kGap] = function->getArg(2);
  Value* skip = lower_expr(e, gate.skip, scope);
  if (!gate.exempt.empty())
    skip = e.ir.CreateAnd(skip, e.ir.CreateNot(lower_expr(e, gate.exempt, scope)));
  e.ir.CreateRet(e.ir.CreateZExt(skip, e.i32()));
}

void emit_sink(Emitter& e, const Expr& sink) {
  llvm::Function* function = e.begin_function("sink", e.f32(), {e.ir.getPtrTy(), e.i32()});
  ExprScope scope = FrameAccess(e, function->getArg(0)).tile_scope();
  scope[Variable::kQ] = function->getArg(1);
  e.ir.CreateRet(lower_expr(e, sink, scope));
}

}  // namespace lacuna::host
