#include "compiler/expr/bounds/interval_arithmetic.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace lacuna {
namespace {

// Bounds are code in every kernel; longer ones cost more than they save.
constexpr std::uint32_t kMaxBoundsSize = 256;

// Approximate functions (ex2.approx, libm) need not be monotone in their last bits.
constexpr float kRelativeSlack = 0x1p-16f;
constexpr float kLogSlack = 0x1p-12f;
constexpr float kTanhSlack = 0x1p-18f;

/// Operators of the builder, for bounds of one operator at a time.
class Arithmetic {
 public:
  /// `range`: of the result.
  Arithmetic(ExprBuilder& builder, ExprType operand, const ValueRange& range)
      : builder_(builder), type_(operand), range_(range) {}

  Bounds apply(ExprOp op, std::span<const Bounds> operands) {
    const Bounds& a = operands[0];
    switch (op) {
      case ExprOp::kToF32:
      case ExprOp::kFloor:
      case ExprOp::kCeil:
        return increasing(op, a);
      case ExprOp::kNegate:
        return {unary(op, a.hi), unary(op, a.lo), a.guard, {}, a.maybe_nan};
      case ExprOp::kAbs:
        return absolute(a);
      case ExprOp::kToI32:  // of NaN everywhere, 0 is both bounds
        return {unary(op, a.lo), unary(op, a.hi), a.guard, {}, false};
      case ExprOp::kBitLength:
        return increasing(op, absolute(a));
      case ExprOp::kExp:
      case ExprOp::kExp2:
        return exponential(op, a);
      case ExprOp::kLog:
      case ExprOp::kLog2:
        return logarithm(op, a);
      case ExprOp::kSqrt:
        return increasing(op, a, not_negative(a));
      case ExprOp::kTanh:
        return slackened(increasing(op, a), kTanhSlack);
      case ExprOp::kSelect:
        return select(a, operands[1], operands[2]);
      default:
        return binary(op, a, operands[1]);
    }
  }

 private:
  int unary(ExprOp op, int a) { return builder_.make(op, a); }
  int make(ExprOp op, int a, int b) { return builder_.make(op, a, b); }
  int min(int a, int b) { return make(ExprOp::kMin, a, b); }
  int max(int a, int b) { return make(ExprOp::kMax, a, b); }
  int both(int a, int b) { return make(ExprOp::kAnd, a, b); }
  int either(int a, int b) { return make(ExprOp::kOr, a, b); }
  int constant(std::int32_t value) {
    return type_ == ExprType::kF32 ? builder_.real(static_cast<float>(value))
                                   : builder_.integer(value);
  }
  int always() { return builder_.boolean(true); }
  bool is_f32() const { return type_ == ExprType::kF32; }

  /// Guard: no value is infinite (or NaN).
  int finite(const Bounds& a) {
    if (is_finite(a.range)) return always();
    const int infinity = builder_.real(std::numeric_limits<float>::infinity());
    return both(make(ExprOp::kLess, unary(ExprOp::kAbs, a.lo), infinity),
                make(ExprOp::kLess, unary(ExprOp::kAbs, a.hi), infinity));
  }

  int not_negative(const Bounds& a) {
    if (a.range.min >= 0 && !a.maybe_nan) return always();
    return make(ExprOp::kGreaterEqual, a.lo, constant(0));
  }

  int not_zero(const Bounds& a) {
    return either(make(ExprOp::kGreater, a.lo, constant(0)),
                  make(ExprOp::kLess, a.hi, constant(0)));
  }

  Bounds increasing(ExprOp op, const Bounds& a) { return increasing(op, a, always()); }
  Bounds increasing(ExprOp op, const Bounds& a, int guard) {
    return {unary(op, a.lo), unary(op, a.hi), both(a.guard, guard), {}, a.maybe_nan};
  }

  Bounds slackened(const Bounds& a, float slack) {
    if (a.is_point()) return a;
    return {make(ExprOp::kSubtract, a.lo, builder_.real(slack)),
            make(ExprOp::kAdd, a.hi, builder_.real(slack)),
            a.guard,
            {},
            a.maybe_nan};
  }

  Bounds exponential(ExprOp op, const Bounds& a) {
    const Bounds bounds = increasing(op, a);
    if (bounds.is_point()) return bounds;
    return {make(ExprOp::kMultiply, bounds.lo, builder_.real(1 - kRelativeSlack)),
            make(ExprOp::kMultiply, bounds.hi, builder_.real(1 + kRelativeSlack)),
            bounds.guard,
            {},
            bounds.maybe_nan};
  }

  Bounds logarithm(ExprOp op, const Bounds& a) {
    return slackened(increasing(op, a, both(not_negative(a), finite(a))), kLogSlack);
  }

  Bounds absolute(const Bounds& a) {
    if (a.range.min >= 0) return a;
    const int flipped_lo = unary(ExprOp::kNegate, a.hi);
    const int flipped_hi = unary(ExprOp::kNegate, a.lo);
    if (a.range.max <= 0) return {flipped_lo, flipped_hi, a.guard, {}, a.maybe_nan};
    if (a.is_point()) {
      const int value = unary(ExprOp::kAbs, a.lo);
      return {value, value, a.guard, {}, a.maybe_nan};
    }
    // max(NaN, 0) is 0, which would be no bound.
    const int guard = a.maybe_nan ? make(ExprOp::kEqual, a.hi, a.hi) : always();
    return {max(max(a.lo, flipped_lo), constant(0)),
            max(a.hi, flipped_hi),
            both(a.guard, guard),
            {},
            false};
  }

  Bounds binary(ExprOp op, const Bounds& a, const Bounds& b) {
    switch (op) {
      case ExprOp::kMin:
      case ExprOp::kMax:
        return pairwise(op, a, b, always());
      case ExprOp::kAdd:
        return pairwise(op, a, b, sum_guard(a, b));
      case ExprOp::kSubtract:
        return {make(op, a.lo, b.hi),
                make(op, a.hi, b.lo),
                both(both(a.guard, b.guard), sum_guard(a, b)),
                {},
                a.maybe_nan || b.maybe_nan};
      case ExprOp::kMultiply:
        return multiply(a, b);
      case ExprOp::kDivide:
        return divide(a, b);
      case ExprOp::kFloorDivide:
        return floor_divide(a, b);
      case ExprOp::kShiftLeft:
      case ExprOp::kShiftRight:
        return shift(op, a, b);
      case ExprOp::kBitAnd:
      case ExprOp::kBitXor:
      case ExprOp::kBitOr:
      case ExprOp::kHash:
        return of_single_values(op, a, b);
      default:
        return modulo(a, b);
    }
  }

  Bounds pairwise(ExprOp op, const Bounds& a, const Bounds& b, int guard) {
    return {make(op, a.lo, b.lo),
            make(op, a.hi, b.hi),
            both(both(a.guard, b.guard), guard),
            {},
            a.maybe_nan || b.maybe_nan};
  }

  /// inf - inf is NaN.
  int sum_guard(const Bounds& a, const Bounds& b) {
    if (!is_f32() || is_finite(a.range) || is_finite(b.range)) return always();
    return both(finite(a), finite(b));
  }

  bool is_scale(const Bounds& a) const {
    return builder_[a.lo].op == ExprOp::kLiteral && a.is_point() && is_finite(a.range) &&
           a.range.min != 0;
  }

  /// The extremes over the corners, for an operator that is monotone along each axis.
  Bounds corners(ExprOp op, const Bounds& a, const Bounds& b, int guard) {
    const int ll = make(op, a.lo, b.lo), lh = make(op, a.lo, b.hi);
    const int hl = make(op, a.hi, b.lo), hh = make(op, a.hi, b.hi);
    return {min(min(ll, lh), min(hl, hh)),
            max(max(ll, lh), max(hl, hh)),
            both(both(a.guard, b.guard), guard),
            {},
            a.maybe_nan || b.maybe_nan};
  }

  Bounds multiply(const Bounds& a, const Bounds& b) {
    if (a.lo == b.lo && a.hi == b.hi && !a.is_point()) return square(a);
    // 0 * inf is NaN.
    const int guard =
        !is_f32() || is_scale(a) || is_scale(b) ? always() : both(finite(a), finite(b));
    if (b.range.min >= 0) return multiply_by_positive(a, b, guard, false);
    if (a.range.min >= 0) return multiply_by_positive(b, a, guard, true);
    return corners(ExprOp::kMultiply, a, b, guard);
  }

  Bounds square(const Bounds& a) {
    const Bounds size = absolute(a);
    const int guard = is_f32() ? finite(size) : always();
    return {make(ExprOp::kMultiply, size.lo, size.lo),
            make(ExprOp::kMultiply, size.hi, size.hi),
            both(size.guard, guard),
            {},
            size.maybe_nan};
  }

  /// a * b for b >= 0; written b * a if `swapped`, as in the mask.
  Bounds multiply_by_positive(const Bounds& a, const Bounds& b, int guard, bool swapped) {
    const auto times = [&](int x, int y) {
      return make(ExprOp::kMultiply, swapped ? y : x, swapped ? x : y);
    };
    // A negative end reaches farther with the larger factor.
    const int lo = a.range.min >= 0   ? times(a.lo, b.lo)
                   : a.range.max <= 0 ? times(a.lo, b.hi)
                                      : min(times(a.lo, b.lo), times(a.lo, b.hi));
    const int hi = a.range.min >= 0   ? times(a.hi, b.hi)
                   : a.range.max <= 0 ? times(a.hi, b.lo)
                                      : max(times(a.hi, b.lo), times(a.hi, b.hi));
    return {lo, hi, both(both(a.guard, b.guard), guard), {}, a.maybe_nan || b.maybe_nan};
  }

  Bounds divide(const Bounds& a, const Bounds& b) {
    if (is_scale(b)) {
      const int by_lo = make(ExprOp::kDivide, a.lo, b.lo);
      const int by_hi = make(ExprOp::kDivide, a.hi, b.lo);
      const bool up = b.range.min > 0;
      return {up ? by_lo : by_hi, up ? by_hi : by_lo, both(a.guard, b.guard), {}, a.maybe_nan};
    }
    return corners(ExprOp::kDivide, a, b, both(both(finite(a), finite(b)), not_zero(b)));
  }

  Bounds floor_divide(const Bounds& a, const Bounds& b) {
    const auto over = [&](int x, int y) { return make(ExprOp::kFloorDivide, x, y); };
    if (b.range.min > 0 && (a.range.min >= 0 || b.is_point())) {
      return {over(a.lo, b.hi), over(a.hi, b.lo), both(a.guard, b.guard), {}, false};
    }
    const bool safe = b.range.min > 0 || b.range.max < 0 || b.is_point();
    return corners(ExprOp::kFloorDivide, a, b, safe ? always() : not_zero(b));
  }

  Bounds modulo(const Bounds& a, const Bounds& b) {
    const int zero = constant(0), one = constant(1);
    const bool positive = b.range.min > 0;
    if (!b.is_point()) {
      const int guard = positive ? always() : make(ExprOp::kGreater, b.lo, zero);
      return {
          zero, make(ExprOp::kSubtract, b.hi, one), both(both(a.guard, b.guard), guard), {}, false};
    }
    // Within one period the remainder rises with a; beyond, it takes every value.
    const int same_period = make(ExprOp::kEqual, make(ExprOp::kFloorDivide, a.lo, b.lo),
                                 make(ExprOp::kFloorDivide, a.hi, b.lo));
    const int least = positive ? zero : min(make(ExprOp::kAdd, b.lo, one), zero);
    const int below = make(ExprOp::kSubtract, b.lo, one);
    const int most = positive ? below : max(below, zero);
    const auto within = [&](int end, int outside) {
      return builder_.make(ExprOp::kSelect, same_period, make(ExprOp::kModulo, end, b.lo), outside);
    };
    return {within(a.lo, least), within(a.hi, most), both(a.guard, b.guard), {}, false};
  }

  Bounds shift(ExprOp op, const Bounds& a, const Bounds& b) {
    if (!b.is_point()) return corners(op, a, b, always());
    return {make(op, a.lo, b.lo), make(op, a.hi, b.lo), both(a.guard, b.guard), {}, false};
  }

  /// The value itself where both operands have one value in the tile; else all of its range.
  Bounds of_single_values(ExprOp op, const Bounds& a, const Bounds& b) {
    const int is_single = both(make(ExprOp::kEqual, a.lo, a.hi), make(ExprOp::kEqual, b.lo, b.hi));
    const auto value_or = [&](double end) {
      return builder_.make(ExprOp::kSelect, is_single, make(op, a.lo, b.lo),
                           builder_.literal(ExprType::kI32, end));
    };
    return {value_or(range_.min), value_or(range_.max), both(a.guard, b.guard), {}, false};
  }

  Bounds select(const Bounds& condition, const Bounds& a, const Bounds& b) {
    const auto choose = [&](int if_either, int x, int y) {
      if (condition.is_point()) return builder_.make(ExprOp::kSelect, condition.lo, x, y);
      const int if_may = builder_.make(ExprOp::kSelect, condition.hi, if_either, y);
      return builder_.make(ExprOp::kSelect, condition.lo, x, if_may);
    };
    int guard = both(a.guard, b.guard);
    // A tile may have values of both sides; a bound that is NaN on one side would be none.
    if (!condition.is_point()) {
      if (a.maybe_nan) guard = both(guard, make(ExprOp::kEqual, a.hi, a.hi));
      if (b.maybe_nan) guard = both(guard, make(ExprOp::kEqual, b.hi, b.hi));
    }
    return {choose(min(a.lo, b.lo), a.lo, b.lo),
            choose(max(a.hi, b.hi), a.hi, b.hi),
            guard,
            {},
            a.maybe_nan || b.maybe_nan};
  }

  ExprBuilder& builder_;
  ExprType type_;
  ValueRange range_;
};

}  // namespace

Bounds point(ExprBuilder& builder, int node, const ValueRange& range, bool maybe_nan) {
  return {node, node, builder.boolean(true), range, maybe_nan};
}

Bounds unknown(ExprBuilder& builder, ExprType type) {
  const ValueRange range = full_range(type);
  // An unknown f32 may be NaN here and a number there, which no bounds describe.
  const bool is_f32 = type == ExprType::kF32;
  return {builder.literal(type, range.min), builder.literal(type, range.max),
          builder.boolean(!is_f32), range, is_f32};
}

namespace {

/// An i32 operand that has one value for the whole tile may be a product of parameters, whose range
/// is all of i32. It is assumed to be no larger than an index, and its guard gets the condition
/// that it is.
void hold_points_small(ExprBuilder& builder, std::span<Bounds> operands) {
  constexpr ValueRange kSmall = {-kMaxIndex, kMaxIndex};
  for (Bounds& a : operands) {
    if (!a.is_point() || (a.range.min >= kSmall.min && a.range.max <= kSmall.max)) continue;
    const int least = builder.literal(ExprType::kI32, kSmall.min);
    const int most = builder.literal(ExprType::kI32, kSmall.max);
    const int is_small = builder.make(ExprOp::kAnd, builder.make(ExprOp::kLessEqual, least, a.lo),
                                      builder.make(ExprOp::kLessEqual, a.lo, most));
    a.guard = builder.make(ExprOp::kAnd, a.guard, is_small);
    a.range = kSmall;
  }
}

ValueRange range_of(ExprOp op, ExprType operand, std::span<const Bounds> operands) {
  std::array<ValueRange, 3> ranges;
  for (std::size_t n = 0; n < operands.size(); ++n) ranges[n] = operands[n].range;
  return operator_range(op, operand, {ranges.data(), operands.size()});
}

}  // namespace

Bounds operator_bounds(ExprBuilder& builder, ExprOp op, ExprType operand,
                       std::vector<Bounds> operands) {
  const ExprType result = op == ExprOp::kToF32   ? ExprType::kF32
                          : op == ExprOp::kToI32 ? ExprType::kI32
                                                 : operand;
  ValueRange range = range_of(op, operand, operands);
  if (result == ExprType::kI32 && !fits_i32(range)) {
    if (operand == ExprType::kI32) hold_points_small(builder, operands);
    range = range_of(op, operand, operands);
    if (!fits_i32(range)) return unknown(builder, result);
  }
  Bounds bounds = Arithmetic(builder, operand, range).apply(op, operands);
  bounds.range = range;
  const std::uint32_t size =
      builder.tree_size(bounds.lo) + builder.tree_size(bounds.hi) + builder.tree_size(bounds.guard);
  return size <= kMaxBoundsSize ? bounds : unknown(builder, result);
}

}  // namespace lacuna
