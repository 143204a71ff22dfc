#include "compiler/expr/bounds/monotonicity.hpp"

#include <vector>

#include "compiler/expr/bounds/ranges.hpp"

namespace lacuna {
namespace {

Monotonicity reversed(Monotonicity given) {
  if (given == Monotonicity::kRises) return Monotonicity::kFalls;
  return given == Monotonicity::kFalls ? Monotonicity::kRises : given;
}
/// Of what rises (not falls) with both.
Monotonicity merged(Monotonicity a, Monotonicity b) {
  if (a == Monotonicity::kConstant || a == b) return b;
  return b == Monotonicity::kConstant ? a : Monotonicity::kUnknown;
}

/// A literal that the variable reaches where it starts, or never.
bool is_least(const ExprNode& node, Variable variable) {
  return node.op == ExprOp::kLiteral && node.literal <= variable_range(variable).min;
}

/// Of the equality of two nodes, if either moves.
Monotonicity monotonicity_of_equality(const ExprNode& a, const ExprNode& b, Variable variable) {
  const bool holds_at_first = (is_variable(a, variable) && is_least(b, variable)) ||
                              (is_variable(b, variable) && is_least(a, variable));
  return holds_at_first ? Monotonicity::kFalls : Monotonicity::kUnknown;
}

/// Of such a number times a literal. Integers may overflow.
Monotonicity scaled(Monotonicity given, const ExprNode& product, const ExprNode& factor) {
  const bool is_known = factor.op == ExprOp::kLiteral && factor.literal != 0;
  if (given == Monotonicity::kConstant) return given;
  if (!is_known || product.type != ExprType::kF32) return Monotonicity::kUnknown;
  return factor.literal > 0 ? given : reversed(given);
}

/// `of`: the monotonicity of a node's n-th child; `child`: that child.
template <class Of, class Child>
Monotonicity monotonicity_of_node(const ExprNode& node, Variable variable, Of of, Child child) {
  switch (node.op) {
    case ExprOp::kVariable:
      return is_variable(node, variable) ? Monotonicity::kRises : Monotonicity::kConstant;
    case ExprOp::kLiteral:
      return Monotonicity::kConstant;
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
    case ExprOp::kMultiply:
      if (of(0) == Monotonicity::kConstant) return scaled(of(1), node, child(0));
      return of(1) == Monotonicity::kConstant ? scaled(of(0), node, child(1))
                                              : Monotonicity::kUnknown;
    case ExprOp::kDivide:
      return of(1) == Monotonicity::kConstant ? scaled(of(0), node, child(1))
                                              : Monotonicity::kUnknown;
    case ExprOp::kToF32:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kTanh:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
      return of(0);
    case ExprOp::kToI32:  // NaN becomes 0, which may be less than what came before
      return child(0).type == ExprType::kI32 || of(0) == Monotonicity::kConstant
                 ? of(0)
                 : Monotonicity::kUnknown;
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kSqrt:  // NaN of what is negative, as p never is
      return is_variable(child(0), Variable::kP) || of(0) == Monotonicity::kConstant
                 ? of(0)
                 : Monotonicity::kUnknown;
    case ExprOp::kEqual:
    case ExprOp::kNotEqual: {
      if (of(0) == Monotonicity::kConstant && of(1) == Monotonicity::kConstant)
        return Monotonicity::kConstant;
      const Monotonicity equal = monotonicity_of_equality(child(0), child(1), variable);
      return node.op == ExprOp::kEqual ? equal : reversed(equal);
    }
    default: {  // factors may be negative, indices and conditions anything
      bool is_constant = true;
      for (int n = 0; n < kMaxParamRank && node.children[static_cast<std::size_t>(n)] >= 0; ++n)
        is_constant = is_constant && of(n) == Monotonicity::kConstant;
      return is_constant ? Monotonicity::kConstant : Monotonicity::kUnknown;
    }
  }
}

}  // namespace

Monotonicity monotonicity_of(const Expr& expr, Variable variable) {
  std::vector<Monotonicity> found;
  for (const ExprNode& node : expr.nodes) {
    const auto place = [&](int n) {
      return static_cast<std::size_t>(node.children[static_cast<std::size_t>(n)]);
    };
    found.push_back(monotonicity_of_node(
        node, variable, [&](int n) { return found[place(n)]; },
        [&](int n) -> const ExprNode& { return expr.nodes[place(n)]; }));
  }
  return found.empty() ? Monotonicity::kConstant : found.back();
}

}  // namespace lacuna
