#include "runtime/cpu/llvm/jit/lower_expr.hpp"

#include <cstddef>
#include <vector>

#include "compiler/expr/evaluate.hpp"
#include "runtime/cpu/llvm/jit/vector_math.hpp"

namespace lacuna::host {
namespace {

using llvm::Value;
using Predicate = llvm::CmpInst::Predicate;

bool is_float(const Value* x) { return x->getType()->isFPOrFPVectorTy(); }

Value* literal(Emitter& e, const ExprNode& node) {
  switch (node.type) {
    case ExprType::kF32:
      return e.constant(static_cast<float>(node.literal));
    case ExprType::kI32:
      return e.constant(static_cast<std::int32_t>(node.literal));
    case ExprType::kBool:
      break;
  }
  return e.ir.getInt1(node.literal != 0);
}

/// A field of the ParamView at `view`. Parameters do not change during a run.
Value* view_field(Emitter& e, llvm::Type* type, Value* view, std::size_t bytes) {
  Value* address = e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), view, bytes);
  llvm::LoadInst* load = e.ir.CreateLoad(type, address);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                    llvm::MDNode::get(e.module.getContext(), {}));
  return load;
}

/// Element offset (i64) of the clamped indices; scalar if all indices are.
Value* param_offset(Emitter& e, Value* view, const std::vector<Value*>& indices) {
  Value* offset = e.index(0);
  for (std::size_t dim = 0; dim < indices.size(); ++dim) {
    Value* extent =
        view_field(e, e.i32(), view, offsetof(ParamView, extent) + dim * sizeof(std::int32_t));
    Value* stride = view_field(e, e.ir.getInt64Ty(), view,
                               offsetof(ParamView, stride) + dim * sizeof(std::int64_t));
    Value* last = e.ir.CreateSub(extent, e.constant(1));
    Value* position = indices[dim];
    e.match({&position, &last});
    position = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, position, last);
    position =
        e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, position, e.bits_like(position, 0));
    position = e.ir.CreateSExt(position, position->getType()->getWithNewType(e.ir.getInt64Ty()));
    e.match({&position, &stride});
    Value* step = e.ir.CreateMul(position, stride);
    e.match({&offset, &step});
    offset = e.ir.CreateAdd(offset, step);
  }
  return offset;
}

/// A parameter's element. A view without data reads its own `value` for every index.
Value* parameter(Emitter& e, const ExprNode& node, const std::vector<Value*>& indices,
                 const ExprScope& scope) {
  llvm::Type* element = node.type == ExprType::kF32 ? e.f32() : e.i32();
  Value* view = e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), scope.params,
                                                node.symbol * sizeof(ParamView));
  Value* data = view_field(e, e.ir.getPtrTy(), view, offsetof(ParamView, data));
  Value* has_data = e.ir.CreateIsNotNull(data);
  Value* own = e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), view, offsetof(ParamView, value));
  Value* base = e.ir.CreateSelect(has_data, data, own);
  Value* offset = param_offset(e, view, indices);
  Value* none = llvm::Constant::getNullValue(offset->getType());
  offset = e.ir.CreateSelect(has_data, offset, none);
  if (!offset->getType()->isVectorTy()) return e.load(element, e.at(element, base, offset), 4);
  return e.ir.CreateMaskedGather(e.vector_of(element), e.at(element, base, offset), llvm::Align(4));
}

/// Floor division and its remainder; x // 0 == 0, x % 0 == x, both wrap.
struct Quotient {
  Value *floor, *remainder;
};

/// A constant divisor: LLVM turns the division into a multiplication.
Value* divide_by_constant(Emitter& e, Value* x, Value* y) {
  Value* quotient = e.ir.CreateSDiv(x, y);
  Value* rest = e.ir.CreateSub(x, e.ir.CreateMul(quotient, y));
  Value* zero = llvm::Constant::getNullValue(x->getType());
  Value* signs_differ = e.ir.CreateICmpSLT(e.ir.CreateXor(rest, y), zero);
  Value* adjust = e.ir.CreateAnd(e.ir.CreateICmpNE(rest, zero), signs_differ);
  return e.ir.CreateAdd(quotient, e.ir.CreateSExt(adjust, x->getType()));
}

/// Any divisor but 0 and -1, through f64: vectors have no integer division, and 53 bits are enough
/// for the floor of any 32-bit quotient.
Value* divide_through_f64(Emitter& e, Value* x, Value* y) {
  llvm::Type* wide = x->getType()->getWithNewType(e.ir.getDoubleTy());
  Value* quotient = e.ir.CreateFDiv(e.ir.CreateSIToFP(x, wide), e.ir.CreateSIToFP(y, wide));
  quotient = e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::floor, quotient);
  return e.ir.CreateFPToSI(quotient, x->getType());
}

Quotient floor_divide(Emitter& e, Value* x, Value* y) {
  Value* quotient = nullptr;
  const auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(y);
  e.match({&x, &y});
  if (fixed != nullptr && !fixed->isZero() && !fixed->isMinusOne()) {
    quotient = divide_by_constant(e, x, y);
  } else {
    Value* zero = e.bits_like(y, 0);
    Value* by_zero = e.ir.CreateICmpEQ(y, zero);
    Value* by_minus_one = e.ir.CreateICmpEQ(y, e.bits_like(y, ~0U));
    Value* special = e.ir.CreateOr(by_zero, by_minus_one);
    Value* divisor = e.ir.CreateSelect(special, e.bits_like(y, 1), y);
    quotient = divide_through_f64(e, x, divisor);
    quotient = e.ir.CreateSelect(by_minus_one, e.ir.CreateNeg(x), quotient);
    quotient = e.ir.CreateSelect(by_zero, zero, quotient);
  }
  return {.floor = quotient, .remainder = e.ir.CreateSub(x, e.ir.CreateMul(quotient, y))};
}

Value* compare(Emitter& e, Predicate ordered, Predicate integer, Value* a, Value* b) {
  return is_float(a) ? e.ir.CreateFCmp(ordered, a, b) : e.ir.CreateICmp(integer, a, b);
}

/// Saturates; NaN becomes 0.
Value* to_i32(Emitter& e, Value* x) {
  if (!is_float(x)) return x;
  llvm::Type* type = x->getType()->getWithNewType(e.i32());
  return e.ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, x->getType()}, {x});
}

Value* shift(Emitter& e, ExprOp op, Value* x, Value* digits) {
  Value* none = e.bits_like(digits, 0);
  Value* most = e.bits_like(digits, 31);
  Value* by = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, digits, none);
  by = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, by, most);
  if (op == ExprOp::kShiftRight) return e.ir.CreateAShr(x, by);
  return e.ir.CreateSelect(e.ir.CreateICmpSGT(digits, most), e.bits_like(x, 0),
                           e.ir.CreateShl(x, by));
}

/// MurmurHash3_x86_32 of one word, as compiler/expr/operators.hpp.
Value* hash(Emitter& e, Value* seed, Value* word) {
  const auto times = [&](Value* x, std::uint32_t factor) {
    return e.ir.CreateMul(x, e.bits_like(x, factor));
  };
  const auto rotated = [&](Value* x, std::uint32_t digits) {
    return e.ir.CreateIntrinsic(llvm::Intrinsic::fshl, {x->getType()},
                                {x, x, e.bits_like(x, digits)});
  };
  const auto folded = [&](Value* x, std::uint32_t digits) {
    return e.ir.CreateXor(x, e.ir.CreateLShr(x, e.bits_like(x, digits)));
  };
  Value* bits = e.ir.CreateXor(seed, times(rotated(times(word, 0xcc9e2d51U), 15), 0x1b873593U));
  bits = times(rotated(bits, 13), 5);
  bits = e.ir.CreateAdd(bits, e.bits_like(bits, 0xe6546b64U));
  bits = e.ir.CreateXor(bits, e.bits_like(bits, 4));
  bits = times(folded(bits, 16), 0x85ebca6bU);
  return folded(times(folded(bits, 13), 0xc2b2ae35U), 16);
}

/// Operators of two operands of one shape and type.
Value* binary(Emitter& e, ExprOp op, Value* a, Value* b) {
  const bool real = is_float(a);
  switch (op) {
    case ExprOp::kAdd:
      return real ? e.ir.CreateFAdd(a, b) : e.ir.CreateAdd(a, b);
    case ExprOp::kSubtract:
      return real ? e.ir.CreateFSub(a, b) : e.ir.CreateSub(a, b);
    case ExprOp::kMultiply:
      return real ? e.ir.CreateFMul(a, b) : e.ir.CreateMul(a, b);
    case ExprOp::kDivide:
      return e.ir.CreateFDiv(a, b);
    case ExprOp::kLess:
      return compare(e, Predicate::FCMP_OLT, Predicate::ICMP_SLT, a, b);
    case ExprOp::kLessEqual:
      return compare(e, Predicate::FCMP_OLE, Predicate::ICMP_SLE, a, b);
    case ExprOp::kGreater:
      return compare(e, Predicate::FCMP_OGT, Predicate::ICMP_SGT, a, b);
    case ExprOp::kGreaterEqual:
      return compare(e, Predicate::FCMP_OGE, Predicate::ICMP_SGE, a, b);
    case ExprOp::kEqual:
      return compare(e, Predicate::FCMP_OEQ, Predicate::ICMP_EQ, a, b);
    case ExprOp::kNotEqual:
      return compare(e, Predicate::FCMP_UNE, Predicate::ICMP_NE, a, b);
    case ExprOp::kAnd:
      return e.ir.CreateAnd(a, b);
    case ExprOp::kOr:
      return e.ir.CreateOr(a, b);
    case ExprOp::kShiftLeft:
    case ExprOp::kShiftRight:
      return shift(e, op, a, b);
    case ExprOp::kBitAnd:
      return e.ir.CreateAnd(a, b);
    case ExprOp::kBitXor:
      return e.ir.CreateXor(a, b);
    case ExprOp::kBitOr:
      return e.ir.CreateOr(a, b);
    case ExprOp::kHash:
      return hash(e, a, b);
    case ExprOp::kMin:
      return e.ir.CreateBinaryIntrinsic(real ? llvm::Intrinsic::minnum : llvm::Intrinsic::smin, a,
                                        b);
    case ExprOp::kMax:
      return e.ir.CreateBinaryIntrinsic(real ? llvm::Intrinsic::maxnum : llvm::Intrinsic::smax, a,
                                        b);
    default:
      break;
  }
  llvm_unreachable("not a binary operator");
}

Value* absolute(Emitter& e, Value* x) {
  if (is_float(x)) return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  return e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, e.ir.getFalse());
}

Value* bit_length(Emitter& e, Value* x) {
  Value* zeros = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, absolute(e, x), e.ir.getFalse());
  return e.ir.CreateSub(e.bits_like(x, 32), zeros);
}

Value* to_f32(Emitter& e, Value* x) {
  llvm::Type* type = x->getType()->getWithNewType(e.f32());
  return e.ir.CreateSIToFP(x, type);
}

Value* lower_node(Emitter& e, const ExprNode& node, std::vector<Value*> in,
                  const ExprScope& scope) {
  switch (node.op) {
    case ExprOp::kLiteral:
      return literal(e, node);
    case ExprOp::kVariable:
      return scope.variables[node.symbol];
    case ExprOp::kParameter:
      return parameter(e, node, in, scope);
    case ExprOp::kToF32:
      return to_f32(e, in[0]);
    case ExprOp::kToI32:
      return to_i32(e, in[0]);
    case ExprOp::kNegate:
      return is_float(in[0]) ? e.ir.CreateFNeg(in[0]) : e.ir.CreateNeg(in[0]);
    case ExprOp::kNot:
      return e.ir.CreateNot(in[0]);
    case ExprOp::kFloorDivide:
      return floor_divide(e, in[0], in[1]).floor;
    case ExprOp::kModulo:
      return floor_divide(e, in[0], in[1]).remainder;
    case ExprOp::kSelect:
      e.match({&in[0], &in[1], &in[2]});
      return e.ir.CreateSelect(in[0], in[1], in[2]);
    case ExprOp::kAbs:
      return absolute(e, in[0]);
    case ExprOp::kExp:
      return emit_exp(e, in[0]);
    case ExprOp::kExp2:
      return emit_exp2(e, in[0]);
    case ExprOp::kLog:
      return emit_log(e, in[0]);
    case ExprOp::kLog2:
      return emit_log2(e, in[0]);
    case ExprOp::kSqrt:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, in[0]);
    case ExprOp::kTanh:
      return emit_tanh(e, in[0]);
    case ExprOp::kFloor:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::floor, in[0]);
    case ExprOp::kCeil:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, in[0]);
    case ExprOp::kBitLength:
      return bit_length(e, in[0]);
    default:
      break;
  }
  e.match({&in[0], &in[1]});
  return binary(e, node.op, in[0], in[1]);
}

}  // namespace

Value* lower_expr(Emitter& e, const Expr& expr, const ExprScope& scope) {
  std::vector<Value*> values;
  values.reserve(expr.nodes.size());
  for (const ExprNode& node : expr.nodes) {
    std::vector<Value*> operands;
    for (const std::int32_t child : node.children)
      if (child >= 0) operands.push_back(values[static_cast<std::size_t>(child)]);
    values.push_back(lower_node(e, node, std::move(operands), scope));
  }
  return values.back();
}

}  // namespace lacuna::host
