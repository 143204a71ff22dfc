#include "compiler/expr/nodes/deciding_nodes.hpp"

#include <cstddef>

namespace lacuna {
namespace {

/// Does the n-th operand decide what the node's value is, or which of two?
bool decides(const ExprNode& node, std::size_t n) {
  const bool rounds = node.op == ExprOp::kFloor || node.op == ExprOp::kCeil;
  const bool chooses = node.op == ExprOp::kSelect && n == 0;
  return node.type != ExprType::kF32 || rounds || chooses;
}

}  // namespace

std::vector<bool> deciding_nodes(const Expr& expr) {
  std::vector<bool> found(expr.nodes.size(), false);
  for (std::size_t id = expr.nodes.size(); id-- > 0;) {
    const ExprNode& node = expr.nodes[id];
    for (std::size_t n = 0; n < node.children.size() && node.children[n] >= 0; ++n)
      if (found[id] || decides(node, n)) found[static_cast<std::size_t>(node.children[n])] = true;
  }
  return found;
}

}  // namespace lacuna
