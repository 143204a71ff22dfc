#include "compiler/expr/nodes/constant_parts.hpp"

#include <algorithm>

namespace lacuna {
namespace {

bool is_leaf(const ExprNode& node) {
  return node.op == ExprOp::kLiteral || node.op == ExprOp::kVariable;
}

}  // namespace

std::vector<bool> changing_nodes(const Expr& expr, std::span<const Variable> changing) {
  std::vector<bool> changes;
  for (const ExprNode& node : expr.nodes) {  // children come before their parents
    const bool is_one = node.op == ExprOp::kVariable &&
                        std::ranges::count(changing, static_cast<Variable>(node.symbol)) != 0;
    changes.push_back(is_one || std::ranges::any_of(node.children, [&](std::int32_t child) {
                        return child >= 0 && changes[static_cast<std::size_t>(child)];
                      }));
  }
  return changes;
}

std::vector<std::int32_t> constant_parts(const Expr& expr, std::span<const Variable> changing) {
  const std::size_t count = expr.nodes.size();
  const std::vector<bool> changes = changing_nodes(expr, changing);
  std::vector<bool> is_inner(count);
  for (std::size_t n = 0; n < count; ++n) {
    if (changes[n]) continue;
    for (const std::int32_t child : expr.nodes[n].children) {
      if (child >= 0) is_inner[static_cast<std::size_t>(child)] = true;
    }
  }
  std::vector<std::int32_t> parts;
  for (std::size_t n = 0; n < count; ++n) {
    if (!changes[n] && !is_inner[n] && !is_leaf(expr.nodes[n]))
      parts.push_back(static_cast<std::int32_t>(n));
  }
  return parts;
}

std::vector<std::int32_t> constant_elements(const Expr& expr, std::span<const Variable> changing) {
  const std::vector<bool> changes = changing_nodes(expr, changing);
  std::vector<std::int32_t> elements;
  for (std::size_t n = 0; n < expr.nodes.size(); ++n) {
    if (!changes[n] && expr.nodes[n].op == ExprOp::kParameter)
      elements.push_back(static_cast<std::int32_t>(n));
  }
  return elements;
}

}  // namespace lacuna
