#include "compiler/expr/trend.hpp"

#include <vector>

namespace lacuna {
namespace {

Trend reversed(Trend trend) {
  if (trend == Trend::kRises) return Trend::kFalls;
  return trend == Trend::kFalls ? Trend::kRises : trend;
}
/// Of what rises (not falls) with both.
Trend merged(Trend a, Trend b) {
  if (a == Trend::kStill || a == b) return b;
  return b == Trend::kStill ? a : Trend::kAnyhow;
}

bool is_p(const ExprNode& node) {
  return node.op == ExprOp::kVariable && node.symbol == static_cast<std::uint16_t>(Variable::kP);
}

/// `of`: the trend of a node's n-th child; `child`: that child.
template <class Of, class Child>
Trend trend_of_node(const ExprNode& node, Variable variable, Of of, Child child) {
  switch (node.op) {
    case ExprOp::kVariable:
      return node.symbol == static_cast<std::uint16_t>(variable) ? Trend::kRises : Trend::kStill;
    case ExprOp::kLiteral:
      return Trend::kStill;
    case ExprOp::kNegate:
    case ExprOp::kNot:
      return reversed(of(0));
    case ExprOp::kSubtract:
    case ExprOp::kGreater:
    case ExprOp::kGreaterEqual:
      return merged(of(0), reversed(of(1)));
    case ExprOp::kLess:
    case ExprOp::kLessEqual:
      return merged(reversed(of(0)), of(1));
    case ExprOp::kAdd:
    case ExprOp::kAnd:
    case ExprOp::kOr:
    case ExprOp::kMin:
    case ExprOp::kMax:
      return merged(of(0), of(1));
    case ExprOp::kToF32:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kTanh:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
      return of(0);
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kSqrt:  // NaN of what is negative, as p never is
      return is_p(child(0)) || of(0) == Trend::kStill ? of(0) : Trend::kAnyhow;
    default: {  // factors may be negative, indices and conditions anything
      bool is_still = true;
      for (int n = 0; n < 3 && node.children[static_cast<std::size_t>(n)] >= 0; ++n)
        is_still = is_still && of(n) == Trend::kStill;
      return is_still ? Trend::kStill : Trend::kAnyhow;
    }
  }
}

}  // namespace

Trend trend_of(const Expr& expr, Variable variable) {
  std::vector<Trend> trends;
  for (const ExprNode& node : expr.nodes) {
    const auto place = [&](int n) {
      return static_cast<std::size_t>(node.children[static_cast<std::size_t>(n)]);
    };
    trends.push_back(trend_of_node(
        node, variable, [&](int n) { return trends[place(n)]; },
        [&](int n) -> const ExprNode& { return expr.nodes[place(n)]; }));
  }
  return trends.empty() ? Trend::kStill : trends.back();
}

}  // namespace lacuna
