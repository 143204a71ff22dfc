#include "compiler/expr/rounded_down.hpp"

#include <algorithm>

namespace lacuna {

bool is_positive_of_head(const ParamSymbol& symbol) {
  return symbol.least >= 1 && std::ranges::all_of(symbol.shape, [](const ParamDim& dim) {
           return dim.axis == ParamAxis::kHeads || dim.axis == ParamAxis::kBatch;
         });
}

bool is_rounded_down(const Expr& expr, const ExprNode& node) {
  if (node.op != ExprOp::kSubtract || node.type != ExprType::kI32) return false;
  const ExprNode& remainder = expr.nodes[static_cast<std::size_t>(node.children[1])];
  if (remainder.op != ExprOp::kModulo || remainder.children[0] != node.children[0]) return false;
  const ExprNode& by = expr.nodes[static_cast<std::size_t>(remainder.children[1])];
  return by.op == ExprOp::kParameter && is_positive_of_head(expr.parameters[by.symbol]);
}

bool rounds_down(const Expr& expr) {
  return std::ranges::any_of(expr.nodes,
                             [&](const ExprNode& node) { return is_rounded_down(expr, node); });
}

}  // namespace lacuna
