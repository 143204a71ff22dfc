#include "runtime/cpu/llvm/attend/frame_access.hpp"

namespace lacuna::host {

using llvm::Value;

Value* FrameAccess::field(llvm::Type* type, std::size_t offset) const {
  Value* address = e_.ir.CreateConstInBoundsGEP1_64(e_.ir.getInt8Ty(), frame_, offset);
  llvm::LoadInst* load = e_.ir.CreateLoad(type, address);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                    llvm::MDNode::get(e_.module.getContext(), {}));
  return load;
}

ExprScope FrameAccess::tile_scope() const {
  ExprScope scope;
  scope.params = pointer(offsetof(Frame, params));
  scope[Variable::kNQ] = word(offsetof(Frame, n_q));
  scope[Variable::kNK] = word(offsetof(Frame, n_k));
  scope[Variable::kH] = word(offsetof(Frame, h));
  scope[Variable::kB] = word(offsetof(Frame, b));
  scope[Variable::kI] = word(offsetof(Frame, i));
  scope[Variable::kJ] = word(offsetof(Frame, j));
  scope[Variable::kNI] = word(offsetof(Frame, n_i));
  scope[Variable::kNJ] = word(offsetof(Frame, n_j));
  scope[Variable::kQ0] = word(offsetof(Frame, q0));
  scope[Variable::kQ1] = word(offsetof(Frame, q1));
  scope[Variable::kK0] = word(offsetof(Frame, k0));
  scope[Variable::kK1] = word(offsetof(Frame, k1));
  scope[Variable::kNB] = word(offsetof(Frame, n_b));
  scope[Variable::kNH] = word(offsetof(Frame, n_h));
  scope[Variable::kNHKv] = word(offsetof(Frame, n_h_kv));
  return scope;
}

}  // namespace lacuna::host
