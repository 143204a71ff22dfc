// Reading a Frame from generated code.
#pragma once

#include "runtime/cpu/llvm/attend/frame.hpp"
#include "runtime/cpu/llvm/jit/emitter.hpp"
#include "runtime/cpu/llvm/jit/lower_expr.hpp"

namespace lacuna::host {

/// Loads of Frame fields, by offset. The frame does not change while generated code runs.
class FrameAccess {
 public:
  FrameAccess(Emitter& e, llvm::Value* frame) : e_(e), frame_(frame) {}

  llvm::Value* pointer(std::size_t offset) const { return field(e_.ir.getPtrTy(), offset); }
  llvm::Value* word(std::size_t offset) const { return field(e_.i32(), offset); }
  llvm::Value* real(std::size_t offset) const { return field(e_.f32(), offset); }

  /// The variables every site shares: lengths, head, batch entry, tile indices and bounds.
  ExprScope tile_scope() const;

 private:
  llvm::Value* field(llvm::Type* type, std::size_t offset) const;
  Emitter& e_;
  llvm::Value* frame_;
};

}  // namespace lacuna::host
