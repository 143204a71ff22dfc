#include "compiler/expr/constant_divisors.hpp"

#include <algorithm>

namespace lacuna {

std::vector<std::int32_t> constant_divisors(const Expr& expr, std::span<const Variable> changing) {
  std::vector<bool> changes;
  std::vector<std::int32_t> divisors;
  const auto child_changes = [&](std::int32_t id) {
    return id >= 0 && changes[static_cast<std::size_t>(id)];
  };
  for (const ExprNode& node : expr.nodes) {  // children come before their parents
    const bool is_changing_variable =
        node.op == ExprOp::kVariable &&
        std::ranges::count(changing, static_cast<Variable>(node.symbol)) != 0;
    changes.push_back(is_changing_variable || std::ranges::any_of(node.children, child_changes));
    if (node.op != ExprOp::kFloorDivide && node.op != ExprOp::kModulo) continue;
    const auto [dividend, divisor, none] = node.children;
    const bool is_literal = expr.nodes[static_cast<std::size_t>(divisor)].op == ExprOp::kLiteral;
    if (child_changes(dividend) && !child_changes(divisor) && !is_literal)
      divisors.push_back(divisor);
  }
  std::ranges::sort(divisors);
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  return divisors;
}

}  // namespace lacuna
