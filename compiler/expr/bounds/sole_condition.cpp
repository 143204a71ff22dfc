#include "compiler/expr/bounds/sole_condition.hpp"

#include <algorithm>

#include "compiler/expr/fold.hpp"

namespace lacuna {
namespace {

/// Of each node: is the variable in it?
std::vector<bool> find_readers(const Expr& expr, Variable variable) {
  std::vector<bool> reads;
  for (const ExprNode& node : expr.nodes) {
    const bool below = std::ranges::any_of(node.children, [&](std::int32_t child) {
      return child >= 0 && reads[static_cast<std::size_t>(child)];
    });
    reads.push_back(below || is_variable(node, variable));
  }
  return reads;
}

}  // namespace

std::optional<Expr> sole_condition(const Expr& rule, Variable variable) {
  const std::vector<bool> reads = find_readers(rule, variable);
  if (reads.empty() || !reads.back()) return std::nullopt;
  std::size_t root = reads.size() - 1;
  const auto child = [&](std::size_t n) {
    return static_cast<std::size_t>(rule.nodes[root].children[n]);
  };
  while (rule.nodes[root].op == ExprOp::kAnd || rule.nodes[root].op == ExprOp::kOr) {
    if (reads[child(0)] && reads[child(1)]) break;
    root = reads[child(0)] ? child(0) : child(1);
  }
  Expr condition = rule;
  condition.nodes.resize(root + 1);
  return fold(std::move(condition));  // which leaves out what its last node does not reach
}

}  // namespace lacuna
