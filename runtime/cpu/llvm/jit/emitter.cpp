#include "runtime/cpu/llvm/jit/emitter.hpp"

#include <algorithm>

namespace lacuna::host {

using llvm::Value;

namespace {

void keep_rolled(llvm::BranchInst* back) {
  llvm::LLVMContext& context = back->getContext();
  auto* disable =
      llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.disable")});
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, disable});
  loop->replaceOperandWith(0, loop);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

}  // namespace

Value* Emitter::constant_like(Value* like, float x) {
  return llvm::ConstantFP::get(like->getType()->getWithNewType(f32()), static_cast<double>(x));
}

Value* Emitter::bits_like(Value* like, std::uint32_t x) {
  return llvm::ConstantInt::get(like->getType()->getWithNewType(i32()), x);
}

Value* Emitter::splat(Value* scalar) {
  if (scalar->getType()->isVectorTy()) return scalar;
  return ir.CreateVectorSplat(static_cast<unsigned>(width), scalar);
}

void Emitter::match(std::initializer_list<Value**> values) {
  const bool any_vector = std::any_of(values.begin(), values.end(),
                                      [](Value** v) { return (*v)->getType()->isVectorTy(); });
  if (!any_vector) return;
  for (Value** v : values) *v = splat(*v);
}

Value* Emitter::lane_numbers() {
  std::vector<llvm::Constant*> lanes;
  lanes.reserve(static_cast<std::size_t>(width));
  for (int lane = 0; lane < width; ++lane)
    lanes.push_back(ir.getInt32(static_cast<std::uint32_t>(lane)));
  return llvm::ConstantVector::get(lanes);
}

Value* Emitter::fma(Value* a, Value* b, Value* c) {
  return ir.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

Value* Emitter::greater(Value* a, Value* b) {
  return ir.CreateSelect(ir.CreateFCmpOGT(a, b), a, b);
}

Value* Emitter::less(Value* a, Value* b) { return ir.CreateSelect(ir.CreateFCmpOLT(a, b), a, b); }

Value* Emitter::horizontal(Value* vector, const std::function<Value*(Value*, Value*)>& combine) {
  for (int half = width / 2; half >= 1; half /= 2) {
    std::vector<int> mask;
    mask.reserve(static_cast<std::size_t>(width));
    for (int lane = 0; lane < width; ++lane) mask.push_back(lane < half ? lane + half : 0);
    vector = combine(vector, ir.CreateShuffleVector(vector, mask));
  }
  return ir.CreateExtractElement(vector, std::uint64_t{0});
}

Value* Emitter::load(llvm::Type* type, Value* pointer, unsigned alignment) {
  return ir.CreateAlignedLoad(type, pointer, llvm::Align(alignment));
}

void Emitter::store(Value* value, Value* pointer, unsigned alignment) {
  ir.CreateAlignedStore(value, pointer, llvm::Align(alignment));
}

void Emitter::loop(Value* begin, Value* end, std::int64_t step, const Body& body) {
  loop(begin, end, step, Values{}, [&](Value* i, const Values&) {
    body(i);
    return Values{};
  });
}

Emitter::Values Emitter::loop(Value* begin, Value* end, std::int64_t step, const Values& carried,
                              const std::function<Values(Value*, const Values&)>& body) {
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = module.getContext();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, "loop", function);
  auto* inside = llvm::BasicBlock::Create(context, "body", function);
  auto* after = llvm::BasicBlock::Create(context, "done", function);
  ir.CreateBr(head);

  ir.SetInsertPoint(head);
  llvm::PHINode* i = ir.CreatePHI(ir.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  for (Value* value : carried) {
    phis.push_back(ir.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
  }
  Values entering(phis.begin(), phis.end());
  ir.CreateCondBr(ir.CreateICmpSLT(i, end), inside, after);

  ir.SetInsertPoint(inside);
  const Values next = body(i, entering);
  llvm::BasicBlock* last = ir.GetInsertBlock();
  i->addIncoming(ir.CreateNSWAdd(i, index(step)), last);
  for (std::size_t n = 0; n < phis.size(); ++n) phis[n]->addIncoming(next[n], last);
  llvm::BranchInst* back = ir.CreateBr(head);
  // Only loops that carry values profit: they are the products and sums.
  if (carried.empty()) keep_rolled(back);

  ir.SetInsertPoint(after);
  return entering;
}

llvm::Function* Emitter::begin_function(const std::string& name, llvm::Type* result,
                                        const std::vector<llvm::Type*>& arguments) {
  auto* type = llvm::FunctionType::get(result, arguments, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, &module);
  function->setDoesNotThrow();
  ir.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  return function;
}

}  // namespace lacuna::host
