#include "compiler/expr/bounds/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/expr/expr_tables.hpp"

namespace lacuna {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ValueRange from_corners(double a, double b, double c, double d) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(c) || std::isnan(d)) {
    return {-kInfinity, kInfinity};
  }
  return {std::min({a, b, c, d}), std::max({a, b, c, d})};
}

ValueRange divide(const ValueRange& a, const ValueRange& b) {
  if (b.min <= 0 && b.max >= 0) return {-kInfinity, kInfinity};
  return from_corners(a.min / b.min, a.min / b.max, a.max / b.min, a.max / b.max);
}

ValueRange floor_divide(const ValueRange& a, const ValueRange& b) {
  // |a // b| is at most |a| (and 1 for small negative a).
  const double most = std::max({std::fabs(a.min), std::fabs(a.max), 1.0});
  if (b.min <= 0) return {-most, most};
  const ValueRange exact = divide(a, b);
  return {std::floor(exact.min), std::floor(exact.max)};
}

ValueRange modulo(const ValueRange& a, const ValueRange& b) {
  if (b.min > 0) return {0, b.max - 1};
  return {std::min({a.min, b.min + 1, 0.0}), std::max({a.max, b.max - 1, 0.0})};
}

ValueRange shift_left(const ValueRange& a, const ValueRange& by) {
  const auto factor = [](double n) { return std::exp2(std::clamp(n, 0.0, 32.0)); };
  return from_corners(a.min * factor(by.min), a.max * factor(by.min), a.min * factor(by.max),
                      a.max * factor(by.max));
}

ValueRange shift_right(const ValueRange& a, const ValueRange& by) {
  const auto part = [](double x, double n) {
    return std::floor(x * std::exp2(-std::clamp(n, 0.0, 32.0)));
  };
  return from_corners(part(a.min, by.min), part(a.max, by.min), part(a.min, by.max),
                      part(a.max, by.max));
}

/// Bits of two numbers that `digits` bits and a sign hold are such a number.
ValueRange bitwise(ExprOp op, const ValueRange& a, const ValueRange& b) {
  const bool is_and = op == ExprOp::kBitAnd;
  if (is_and && a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
  if (is_and && (a.min >= 0 || b.min >= 0)) return {0, a.min >= 0 ? a.max : b.max};
  const double size = std::max({-a.min - 1, a.max, -b.min - 1, b.max, 0.0});
  const double most = std::exp2(std::ceil(std::log2(size + 1))) - 1;
  return {a.min >= 0 && b.min >= 0 ? 0 : -most - 1, most};
}

ValueRange absolute(const ValueRange& a) {
  const double least = a.min > 0 ? a.min : a.max < 0 ? -a.max : 0;
  return {least, std::max(std::fabs(a.min), std::fabs(a.max))};
}

}  // namespace

ValueRange full_range(ExprType type) {
  if (type == ExprType::kBool) return {0, 1};
  if (type == ExprType::kF32) return {-kInfinity, kInfinity};
  return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
}

ValueRange literal_range(double value) { return {value, value}; }

ValueRange variable_range(Variable variable) {
  return info(variable).type == ExprType::kI32 ? ValueRange{0, kMaxIndex}
                                               : full_range(ExprType::kF32);
}

ValueRange parameter_range(ExprType type) {
  return type == ExprType::kI32 ? ValueRange{-kMaxIndex, kMaxIndex} : full_range(type);
}

ValueRange parameter_range(const ParamSymbol& symbol) {
  const ValueRange all = parameter_range(symbol.type);
  if (symbol.type != ExprType::kI32) return all;
  const auto within = [&](std::int32_t end) { return std::clamp<double>(end, all.min, all.max); };
  return {within(symbol.least), within(symbol.most)};
}

ValueRange operator_range(ExprOp op, ExprType operand, std::span<const ValueRange> operands) {
  const ValueRange a = operands[0];
  const ValueRange b = operands.size() > 1 ? operands[1] : ValueRange{};
  switch (op) {
    case ExprOp::kToF32:
      return a;
    case ExprOp::kNegate:
      return {-a.max, -a.min};
    case ExprOp::kAdd:
      return from_corners(a.min + b.min, a.max + b.max, a.min + b.min, a.max + b.max);
    case ExprOp::kSubtract:
      return from_corners(a.min - b.max, a.max - b.min, a.min - b.max, a.max - b.min);
    case ExprOp::kMultiply:
      return from_corners(a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max);
    case ExprOp::kDivide:
      return divide(a, b);
    case ExprOp::kFloorDivide:
      return floor_divide(a, b);
    case ExprOp::kModulo:
      return modulo(a, b);
    case ExprOp::kMin:
    case ExprOp::kMax: {
      // NaN yields the other operand, so f32 keeps the wider bound.
      const bool is_min = op == ExprOp::kMin;
      if (operand == ExprType::kF32) return {std::min(a.min, b.min), std::max(a.max, b.max)};
      return is_min ? ValueRange{std::min(a.min, b.min), std::min(a.max, b.max)}
                    : ValueRange{std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case ExprOp::kSelect: {
      const ValueRange c = operands[2];
      return {std::min(b.min, c.min), std::max(b.max, c.max)};
    }
    case ExprOp::kAbs:
      return absolute(a);
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kSqrt:
      return {0, kInfinity};
    case ExprOp::kTanh:
      return {-1, 1};
    case ExprOp::kFloor:
    case ExprOp::kCeil:
      return {a.min - 1, a.max + 1};
    case ExprOp::kBitLength:
      return {0, 32};
    case ExprOp::kShiftLeft:
      return shift_left(a, b);
    case ExprOp::kShiftRight:
      return shift_right(a, b);
    case ExprOp::kBitAnd:
    case ExprOp::kBitXor:
    case ExprOp::kBitOr:
      return bitwise(op, a, b);
    case ExprOp::kHash:
      return full_range(ExprType::kI32);
    case ExprOp::kToI32: {  // NaN becomes 0, and f32 rounds
      const ValueRange all = full_range(ExprType::kI32);
      if (operand == ExprType::kI32) return a;
      return {std::clamp(a.min - 1, all.min, 0.0), std::clamp(a.max + 1, 0.0, all.max)};
    }
    case ExprOp::kLog:
    case ExprOp::kLog2:
      return {-kInfinity, kInfinity};
    default:
      return full_range(ExprType::kBool);
  }
}

ValueRange node_range(const ExprNode& node, ExprType operand,
                      std::span<const ValueRange> operands) {
  switch (node.op) {
    case ExprOp::kLiteral:
      return literal_range(node.literal);
    case ExprOp::kVariable:
      return variable_range(static_cast<Variable>(node.symbol));
    case ExprOp::kParameter:
      return parameter_range(node.type);
    default:
      return operator_range(node.op, operand, operands);
  }
}

ValueRange wrapped_range(ExprType type, const ValueRange& range) {
  return type == ExprType::kI32 && !fits_i32(range) ? full_range(ExprType::kI32) : range;
}

bool fits_i32(const ValueRange& range) {
  const ValueRange full = full_range(ExprType::kI32);
  return range.min >= full.min && range.max <= full.max;
}

bool is_finite(const ValueRange& range) { return range.min > -1e38 && range.max < 1e38; }

}  // namespace lacuna
