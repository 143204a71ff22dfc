#include "compiler/expr/constant_parts.hpp"

#include <algorithm>

namespace lacuna {
namespace {

bool is_leaf(const ExprNode& node) {
  return node.op == ExprOp::kLiteral || node.op == ExprOp::kVariable;
}

}  // namespace

std::vector<std::int32_t> constant_parts(const Expr& expr, std::span<const Variable> changing) {
  const std::size_t count = expr.nodes.size();
  std::vector<char> is_constant(count), is_inner(count);
  for (std::size_t n = 0; n < count; ++n) {  // children come before their parents
    const ExprNode& node = expr.nodes[n];
    is_constant[n] = node.op != ExprOp::kVariable ||
                     std::ranges::count(changing, static_cast<Variable>(node.symbol)) == 0;
    for (const std::int32_t child : node.children) {
      if (child >= 0 && !is_constant[static_cast<std::size_t>(child)]) is_constant[n] = 0;
    }
    if (!is_constant[n]) continue;
    for (const std::int32_t child : node.children) {
      if (child >= 0) is_inner[static_cast<std::size_t>(child)] = 1;
    }
  }
  std::vector<std::int32_t> parts;
  for (std::size_t n = 0; n < count; ++n) {
    if (is_constant[n] && !is_inner[n] && !is_leaf(expr.nodes[n]))
      parts.push_back(static_cast<std::int32_t>(n));
  }
  return parts;
}

}  // namespace lacuna
