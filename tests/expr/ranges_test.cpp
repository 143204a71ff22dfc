// Ranges of operators on integers: no result is outside, and where the ends are results of ends,
// both are reached.
#include "compiler/expr/bounds/ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lacuna {
namespace {

struct Operator {
  ExprOp op;
  double (*of)(int, int);
  bool is_reached;  ///< both ends are results
};

/// `//` and `%` by 0 are 0 (compiler/expr/operators.hpp).
double floored(int a, int b) { return b == 0 ? 0 : std::floor(double(a) / b); }

const Operator kOperators[] = {
    {ExprOp::kAdd, [](int a, int b) { return double(a) + b; }, true},
    {ExprOp::kSubtract, [](int a, int b) { return double(a) - b; }, true},
    {ExprOp::kMultiply, [](int a, int b) { return double(a) * b; }, true},
    {ExprOp::kMin, [](int a, int b) { return double(std::min(a, b)); }, true},
    {ExprOp::kMax, [](int a, int b) { return double(std::max(a, b)); }, true},
    {ExprOp::kFloorDivide, floored, false},
    {ExprOp::kModulo, [](int a, int b) { return b == 0 ? a : a - floored(a, b) * b; }, false},
    {ExprOp::kShiftLeft, [](int a, int b) { return a * std::exp2(std::max(b, 0)); }, true},
    {ExprOp::kShiftRight, [](int a, int b) { return std::floor(a / std::exp2(std::max(b, 0))); },
     true},
    {ExprOp::kBitAnd, [](int a, int b) { return double(a & b); }, false},
    {ExprOp::kBitOr, [](int a, int b) { return double(a | b); }, false},
    {ExprOp::kBitXor, [](int a, int b) { return double(a ^ b); }, false},
};

void expect_range(const Operator& row, std::array<int, 2> a, std::array<int, 2> b) {
  const std::array<ValueRange, 2> operands = {ValueRange{double(a[0]), double(a[1])},
                                              ValueRange{double(b[0]), double(b[1])}};
  const ValueRange range = operator_range(row.op, ExprType::kI32, operands);
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (int x = a[0]; x <= a[1]; ++x)
    for (int y = b[0]; y <= b[1]; ++y) {
      least = std::min(least, row.of(x, y));
      most = std::max(most, row.of(x, y));
    }
  SCOPED_TRACE(testing::Message() << static_cast<int>(row.op) << " of " << a[0] << ".." << a[1]
                                  << " and " << b[0] << ".." << b[1]);
  EXPECT_LE(range.min, least);
  EXPECT_GE(range.max, most);
  if (!row.is_reached) return;
  EXPECT_EQ(range.min, least);
  EXPECT_EQ(range.max, most);
}

TEST(ranges, hold_every_result_of_small_integers) {
  constexpr int kEnds[] = {-9, -4, -1, 0, 1, 3, 8};
  for (const Operator& row : kOperators)
    for (const int a0 : kEnds)
      for (const int a1 : kEnds)
        for (const int b0 : kEnds)
          for (const int b1 : kEnds)
            if (a0 <= a1 && b0 <= b1) expect_range(row, {a0, a1}, {b0, b1});
}

}  // namespace
}  // namespace lacuna
