#include "compiler/expr/fold.hpp"

#include <algorithm>

#include "compiler/expr/builder.hpp"

namespace lacuna {
namespace {

int intern_all(ExprBuilder& builder, const Expr& expr) {
  std::vector<int> moved;
  moved.reserve(expr.nodes.size());
  for (ExprNode node : expr.nodes) {
    node.children = moved_children(node, moved);
    moved.push_back(builder.intern(node));
  }
  return moved.back();
}

}  // namespace

Expr fold(Expr expr) {
  if (expr.empty()) return expr;
  ExprBuilder builder;
  return rewritten(builder, expr, expr.parameters,
                   [&](const ExprNode& node, const ExprChildren& children) {
                     return builder.copy(node, children);
                   });
}

bool is_constant(const Expr& expr, double value) {
  return !expr.empty() && expr.root().op == ExprOp::kLiteral && expr.root().literal == value;
}

bool uses(const Expr& expr, Variable variable) {
  return std::any_of(expr.nodes.begin(), expr.nodes.end(),
                     [&](const ExprNode& node) { return is_variable(node, variable); });
}

bool uses_parameter(const Expr& expr, int parameter) {
  return std::any_of(expr.nodes.begin(), expr.nodes.end(), [&](const ExprNode& node) {
    return node.op == ExprOp::kParameter && node.symbol == static_cast<std::uint16_t>(parameter);
  });
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  if (a.parameters != b.parameters) return false;
  ExprBuilder builder;
  return intern_all(builder, a) == intern_all(builder, b);
}

}  // namespace lacuna
