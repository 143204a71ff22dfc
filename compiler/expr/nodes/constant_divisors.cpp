#include "compiler/expr/nodes/constant_divisors.hpp"

#include <algorithm>

#include "compiler/expr/nodes/constant_parts.hpp"

namespace lacuna {

std::vector<std::int32_t> constant_divisors(const Expr& expr, std::span<const Variable> changing) {
  const std::vector<bool> changes = changing_nodes(expr, changing);
  std::vector<std::int32_t> divisors;
  for (const ExprNode& node : expr.nodes) {
    if (node.op != ExprOp::kFloorDivide && node.op != ExprOp::kModulo) continue;
    const auto dividend = static_cast<std::size_t>(node.children[0]);
    const auto divisor = static_cast<std::size_t>(node.children[1]);
    const bool is_literal = expr.nodes[divisor].op == ExprOp::kLiteral;
    if (changes[dividend] && !changes[divisor] && !is_literal) divisors.push_back(node.children[1]);
  }
  std::ranges::sort(divisors);
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  return divisors;
}

}  // namespace lacuna
