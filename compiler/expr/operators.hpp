// What each operator computes on scalars: the one definition behind the interpreter and constant
// folding, and the yardstick for the CUDA printer and the LLVM lowering.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/expr/expr.hpp"
#include "compiler/expr/scalar.hpp"

namespace lacuna {

inline std::int32_t wrap(std::uint32_t bits) { return static_cast<std::int32_t>(bits); }
inline std::uint32_t bits_of(std::int32_t x) { return static_cast<std::uint32_t>(x); }

inline std::int32_t floor_divide(std::int32_t a, std::int32_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrap(0u - bits_of(a));  // INT_MIN / -1 traps on x86
  const std::int32_t quotient = a / b;
  return quotient - static_cast<std::int32_t>(a % b != 0 && (a < 0) != (b < 0));
}

inline std::int32_t floor_modulo(std::int32_t a, std::int32_t b) {
  return wrap(bits_of(a) - bits_of(floor_divide(a, b)) * bits_of(b));
}

inline std::int32_t bit_length(std::int32_t x) {
  return static_cast<std::int32_t>(std::bit_width(x < 0 ? 0u - bits_of(x) : bits_of(x)));
}

inline std::int32_t shift_left(std::int32_t x, std::int32_t n) {
  return n >= 32 ? 0 : wrap(bits_of(x) << (n < 0 ? 0 : n));
}

inline std::int32_t shift_right(std::int32_t x, std::int32_t n) {
  return x >> (n < 0 ? 0 : n > 31 ? 31 : n);
}

inline std::int32_t to_i32(float x) {
  if (x != x) return 0;
  if (x >= 0x1p31F) return std::numeric_limits<std::int32_t>::max();
  if (x < -0x1p31F) return std::numeric_limits<std::int32_t>::min();
  return static_cast<std::int32_t>(x);
}

/// MurmurHash3_x86_32 (Appleby, public domain) of one word.
inline std::int32_t hash(std::int32_t seed, std::int32_t word) {
  std::uint32_t bits = bits_of(seed) ^ (std::rotl(bits_of(word) * 0xcc9e2d51U, 15) * 0x1b873593U);
  bits = std::rotl(bits, 13) * 5 + 0xe6546b64U;
  bits ^= 4;  // bytes of the word
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bU;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35U;
  return wrap(bits ^ (bits >> 16));
}

inline Scalar scalar(float x) { return {.f32 = x}; }
inline Scalar scalar(std::int32_t x) {
  Scalar s;
  s.i32 = x;
  return s;
}
inline Scalar scalar(bool x) {
  Scalar s;
  s.boolean = x;
  return s;
}

/// The value of a literal node, and back.
inline Scalar literal_value(const ExprNode& node) {
  switch (node.type) {
    case ExprType::kF32:
      return scalar(static_cast<float>(node.literal));
    case ExprType::kI32:
      return scalar(static_cast<std::int32_t>(node.literal));
    default:
      return scalar(node.literal != 0);
  }
}

inline double literal_of(ExprType type, Scalar value) {
  switch (type) {
    case ExprType::kF32:
      return static_cast<double>(value.f32);
    case ExprType::kI32:
      return value.i32;
    default:
      return value.boolean ? 1 : 0;
  }
}

/// f32 operands and operators of f32.
inline Scalar apply_f32(ExprOp op, float a, float b) {
  switch (op) {
    case ExprOp::kNegate:
      return scalar(-a);
    case ExprOp::kAdd:
      return scalar(a + b);
    case ExprOp::kSubtract:
      return scalar(a - b);
    case ExprOp::kMultiply:
      return scalar(a * b);
    case ExprOp::kDivide:
      return scalar(a / b);
    case ExprOp::kLess:
      return scalar(a < b);
    case ExprOp::kLessEqual:
      return scalar(a <= b);
    case ExprOp::kGreater:
      return scalar(a > b);
    case ExprOp::kGreaterEqual:
      return scalar(a >= b);
    case ExprOp::kEqual:
      return scalar(a == b);
    case ExprOp::kNotEqual:
      return scalar(a != b);
    case ExprOp::kMin:
      return scalar(std::fmin(a, b));
    case ExprOp::kMax:
      return scalar(std::fmax(a, b));
    case ExprOp::kAbs:
      return scalar(std::fabs(a));
    case ExprOp::kExp:
      return scalar(std::exp(a));
    case ExprOp::kExp2:
      return scalar(std::exp2(a));
    case ExprOp::kLog:
      return scalar(std::log(a));
    case ExprOp::kLog2:
      return scalar(std::log2(a));
    case ExprOp::kSqrt:
      return scalar(std::sqrt(a));
    case ExprOp::kTanh:
      return scalar(std::tanh(a));
    case ExprOp::kFloor:
      return scalar(std::floor(a));
    case ExprOp::kToI32:
      return scalar(to_i32(a));
    default:
      return scalar(std::ceil(a));
  }
}

/// i32 operands and operators of i32; + - * wrap.
inline Scalar apply_i32(ExprOp op, std::int32_t a, std::int32_t b) {
  switch (op) {
    case ExprOp::kToF32:
      return scalar(static_cast<float>(a));
    case ExprOp::kNegate:
      return scalar(wrap(0u - bits_of(a)));
    case ExprOp::kAdd:
      return scalar(wrap(bits_of(a) + bits_of(b)));
    case ExprOp::kSubtract:
      return scalar(wrap(bits_of(a) - bits_of(b)));
    case ExprOp::kMultiply:
      return scalar(wrap(bits_of(a) * bits_of(b)));
    case ExprOp::kFloorDivide:
      return scalar(floor_divide(a, b));
    case ExprOp::kModulo:
      return scalar(floor_modulo(a, b));
    case ExprOp::kShiftLeft:
      return scalar(shift_left(a, b));
    case ExprOp::kShiftRight:
      return scalar(shift_right(a, b));
    case ExprOp::kBitAnd:
      return scalar(a & b);
    case ExprOp::kBitXor:
      return scalar(a ^ b);
    case ExprOp::kBitOr:
      return scalar(a | b);
    case ExprOp::kHash:
      return scalar(hash(a, b));
    case ExprOp::kToI32:
      return scalar(a);
    case ExprOp::kLess:
      return scalar(a < b);
    case ExprOp::kLessEqual:
      return scalar(a <= b);
    case ExprOp::kGreater:
      return scalar(a > b);
    case ExprOp::kGreaterEqual:
      return scalar(a >= b);
    case ExprOp::kEqual:
      return scalar(a == b);
    case ExprOp::kNotEqual:
      return scalar(a != b);
    case ExprOp::kMin:
      return scalar(a < b ? a : b);
    case ExprOp::kMax:
      return scalar(a > b ? a : b);
    case ExprOp::kAbs:
      return scalar(a < 0 ? wrap(0u - bits_of(a)) : a);
    default:
      return scalar(bit_length(a));
  }
}

/// One operator; `operand` is the type of its first numeric operand (of both, as typing ensures).
inline Scalar apply(ExprOp op, ExprType operand, Scalar a, Scalar b, Scalar c) {
  switch (op) {
    case ExprOp::kNot:
      return scalar(!a.boolean);
    case ExprOp::kAnd:
      return scalar(a.boolean && b.boolean);
    case ExprOp::kOr:
      return scalar(a.boolean || b.boolean);
    case ExprOp::kSelect:
      return a.boolean ? b : c;
    default:
      return operand == ExprType::kF32 ? apply_f32(op, a.f32, b.f32) : apply_i32(op, a.i32, b.i32);
  }
}

}  // namespace lacuna
