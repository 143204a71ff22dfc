// Identities that hold for every input: i32 arithmetic wraps, so it may be reassociated; f32 has
// NaN, infinities and -0.0, so little of it may. Constants fold to what the interpreter computes.
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/operators.hpp"

namespace lacuna {
namespace {

constexpr double kI32Min = std::numeric_limits<std::int32_t>::min();
constexpr double kI32Max = std::numeric_limits<std::int32_t>::max();

bool is_literal(const ExprBuilder& builder, int id) { return builder[id].op == ExprOp::kLiteral; }

bool is_literal(const ExprBuilder& builder, int id, double value) {
  return is_literal(builder, id) && builder[id].literal == value &&
         std::signbit(builder[id].literal) == std::signbit(value);
}

// NaN has no literal; what computes it stays as written.
int fold_constant(ExprBuilder& builder, ExprOp op, int a, int b, int c) {
  for (const int id : {a, b, c}) {
    if (id >= 0 && !is_literal(builder, id)) return -1;
  }
  const auto value = [&](int id) { return id < 0 ? Scalar{} : literal_value(builder[id]); };
  const ExprType operand = builder[a].type;
  const ExprType type = result_type(builder, op, a, b);
  const double result = literal_of(type, apply(op, operand, value(a), value(b), value(c)));
  return std::isnan(result) ? -1 : builder.literal(type, result);
}

bool is_sum(ExprOp op) { return op == ExprOp::kAdd || op == ExprOp::kSubtract; }

/// x + c with the constants of nested sums gathered and the sign of c in the operator.
int add_constant(ExprBuilder& builder, ExprOp op, int x, int c) {
  const auto signed_bits = [&](ExprOp sign, int id) {
    const std::uint32_t bits = bits_of(literal_value(builder[id]).i32);
    return sign == ExprOp::kAdd ? bits : 0u - bits;
  };
  std::uint32_t total = signed_bits(op, c);
  const ExprNode inner = builder[x];
  const bool nested = is_sum(inner.op) && is_literal(builder, inner.children[1]);
  if (nested) {
    total += signed_bits(inner.op, inner.children[1]);
    x = inner.children[0];
  }
  const std::int32_t sum = wrap(total);
  if (sum == 0) return x;
  const bool negative = sum < 0 && sum != std::numeric_limits<std::int32_t>::min();
  const ExprOp wanted = negative ? ExprOp::kSubtract : ExprOp::kAdd;
  if (!nested && wanted == op) return -1;
  return builder.make(wanted, x, builder.integer(negative ? -sum : sum));
}

/// 2^n with n from 0 to 30, or -1.
double power_of_two(const ExprBuilder& builder, int n) {
  const double digits = builder[n].literal;
  return is_literal(builder, n) && digits >= 0 && digits <= 30 ? std::exp2(digits) : -1;
}

/// What shifts and masks by constants do is said by products, quotients and remainders, of which
/// interval analysis and the printers know more.
int simplify_bits(ExprBuilder& builder, ExprOp op, int a, int b) {
  const auto by = [&](ExprOp wanted, double value) {
    return builder.make(wanted, a, builder.literal(ExprType::kI32, value));
  };
  switch (op) {
    case ExprOp::kShiftLeft:
    case ExprOp::kShiftRight: {
      const double power = power_of_two(builder, b);
      if (power < 0) return -1;
      return by(op == ExprOp::kShiftLeft ? ExprOp::kMultiply : ExprOp::kFloorDivide, power);
    }
    case ExprOp::kBitAnd: {
      if (is_literal(builder, a)) std::swap(a, b);
      if (a == b || is_literal(builder, b, -1)) return a;
      const double next = builder[b].literal + 1;  // a mask of the lowest bits
      const bool is_mask = is_literal(builder, b) && next >= 1 && next <= 0x1p30 &&
                           std::exp2(std::round(std::log2(next))) == next;
      return is_mask ? by(ExprOp::kModulo, next) : -1;
    }
    case ExprOp::kBitXor:
      if (a == b) return builder.integer(0);
      [[fallthrough]];
    default:  // or
      if (a == b || is_literal(builder, b, 0)) return a;
      return is_literal(builder, a, 0) ? b : -1;
  }
}

int simplify_i32(ExprBuilder& builder, ExprOp op, int a, int b) {
  switch (op) {
    case ExprOp::kAdd:
      if (is_literal(builder, a, 0)) return b;
      return is_literal(builder, b) ? add_constant(builder, op, a, b) : -1;
    case ExprOp::kSubtract:
      if (a == b) return builder.integer(0);
      return is_literal(builder, b) ? add_constant(builder, op, a, b) : -1;
    case ExprOp::kMultiply:
      if (is_literal(builder, a, 0) || is_literal(builder, b, 1)) return a;
      if (is_literal(builder, b, 0) || is_literal(builder, a, 1)) return b;
      return -1;
    case ExprOp::kFloorDivide:
      if (is_literal(builder, a, 0) || is_literal(builder, b, 1)) return a;
      return is_literal(builder, b, 0) ? b : -1;
    case ExprOp::kModulo:
      if (is_literal(builder, a, 0) || is_literal(builder, b, 0)) return a;
      return is_literal(builder, b, 1) ? builder.integer(0) : -1;
    case ExprOp::kMin:
      if (is_literal(builder, a, kI32Min) || is_literal(builder, b, kI32Max)) return a;
      return is_literal(builder, b, kI32Min) || is_literal(builder, a, kI32Max) ? b : -1;
    case ExprOp::kMax:
      if (is_literal(builder, a, kI32Max) || is_literal(builder, b, kI32Min)) return a;
      return is_literal(builder, b, kI32Max) || is_literal(builder, a, kI32Min) ? b : -1;
    case ExprOp::kShiftLeft:
    case ExprOp::kShiftRight:
    case ExprOp::kBitAnd:
    case ExprOp::kBitXor:
    case ExprOp::kBitOr:
      return simplify_bits(builder, op, a, b);
    case ExprOp::kToI32:
      return a;
    default:
      return -1;
  }
}

int simplify_f32(const ExprBuilder& builder, ExprOp op, int a, int b) {
  switch (op) {
    case ExprOp::kAdd:  // x + 0.0 would turn -0.0 into 0.0
      if (is_literal(builder, a, -0.0)) return b;
      return is_literal(builder, b, -0.0) ? a : -1;
    case ExprOp::kSubtract:
      return is_literal(builder, b, 0.0) ? a : -1;
    case ExprOp::kMultiply:
      if (is_literal(builder, a, 1)) return b;
      return is_literal(builder, b, 1) ? a : -1;
    case ExprOp::kDivide:
      return is_literal(builder, b, 1) ? a : -1;
    default:
      return -1;
  }
}

int simplify_bool(ExprBuilder& builder, ExprOp op, int a, int b) {
  if (op == ExprOp::kAnd) {
    if (a == b || is_literal(builder, b, 1) || is_literal(builder, a, 0)) return a;
    return is_literal(builder, a, 1) || is_literal(builder, b, 0) ? b : -1;
  }
  if (op == ExprOp::kOr) {
    if (a == b || is_literal(builder, b, 0) || is_literal(builder, a, 1)) return a;
    return is_literal(builder, a, 0) || is_literal(builder, b, 1) ? b : -1;
  }
  const ExprNode inner = builder[a];  // not
  if (inner.op == ExprOp::kNot) return inner.children[0];
  const auto flipped = [&](ExprOp to) {
    return builder.make(to, inner.children[0], inner.children[1]);
  };
  if (inner.op == ExprOp::kEqual) return flipped(ExprOp::kNotEqual);
  if (inner.op == ExprOp::kNotEqual) return flipped(ExprOp::kEqual);
  // With NaN both a < b and a >= b are false.
  if (inner.children[0] < 0 || builder[inner.children[0]].type != ExprType::kI32) return -1;
  switch (inner.op) {
    case ExprOp::kLess:
      return flipped(ExprOp::kGreaterEqual);
    case ExprOp::kLessEqual:
      return flipped(ExprOp::kGreater);
    case ExprOp::kGreater:
      return flipped(ExprOp::kLessEqual);
    case ExprOp::kGreaterEqual:
      return flipped(ExprOp::kLess);
    default:
      return -1;
  }
}

int simplify_comparison(ExprBuilder& builder, ExprOp op, int a, int b) {
  if (op == ExprOp::kGreater || op == ExprOp::kGreaterEqual) {
    std::swap(a, b);
    op = op == ExprOp::kGreater ? ExprOp::kLess : ExprOp::kLessEqual;
  }
  const bool is_i32 = builder[a].type == ExprType::kI32;
  if (op == ExprOp::kLess) {
    const bool never =
        a == b || (is_i32 && (is_literal(builder, a, kI32Max) || is_literal(builder, b, kI32Min)));
    return never ? builder.boolean(false) : -1;
  }
  if (!is_i32) return -1;  // NaN differs from itself
  if (a == b) return builder.boolean(op != ExprOp::kNotEqual);
  const bool always = op == ExprOp::kLessEqual &&
                      (is_literal(builder, a, kI32Min) || is_literal(builder, b, kI32Max));
  return always ? builder.boolean(true) : -1;
}

int simplify_select(const ExprBuilder& builder, int condition, int a, int b) {
  if (a == b || is_literal(builder, condition, 1)) return a;
  return is_literal(builder, condition, 0) ? b : -1;
}

}  // namespace

int simplify(ExprBuilder& builder, ExprOp op, int a, int b, int c) {
  if (const int constant = fold_constant(builder, op, a, b, c); constant >= 0) return constant;
  if (is_comparison(op)) return simplify_comparison(builder, op, a, b);
  switch (op) {
    case ExprOp::kNot:
    case ExprOp::kAnd:
    case ExprOp::kOr:
      return simplify_bool(builder, op, a, b);
    case ExprOp::kSelect:
      return simplify_select(builder, a, b, c);
    case ExprOp::kNegate:
      return builder[a].op == ExprOp::kNegate ? builder[a].children[0] : -1;
    case ExprOp::kAbs:
      return builder[a].op == ExprOp::kAbs ? a : -1;
    case ExprOp::kMin:
    case ExprOp::kMax:
      if (a == b) return a;
      break;
    default:
      break;
  }
  return builder[a].type == ExprType::kI32 ? simplify_i32(builder, op, a, b)
                                           : simplify_f32(builder, op, a, b);
}

}  // namespace lacuna
