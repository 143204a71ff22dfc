#include "compiler/expr/text/conditions.hpp"

namespace lacuna {

bool takes_conditions(ExprOp op) {
  return op == ExprOp::kSelect || op == ExprOp::kEqual || op == ExprOp::kNotEqual;
}

int make_of_conditions(ExprBuilder& builder, ExprOp op, const std::array<int, 3>& operands) {
  const auto [a, b, c] = operands;
  const auto both = [&](int x, int y) { return builder.make(ExprOp::kAnd, x, y); };
  const auto either = [&](int x, int y) { return builder.make(ExprOp::kOr, x, y); };
  const auto negated = [&](int x) { return builder.make(ExprOp::kNot, x); };
  if (op == ExprOp::kSelect) return either(both(a, b), both(negated(a), c));
  if (op == ExprOp::kEqual) return either(both(a, b), negated(either(a, b)));
  return both(either(a, b), negated(both(a, b)));
}

}  // namespace lacuna
