#include "compiler/expr/vector_read.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lacuna {

int vector_read_rank(const Expr& formula, Variable element) {
  if (formula.empty()) return 0;
  const ExprNode& root = formula.root();
  if (root.op != ExprOp::kParameter || root.type != ExprType::kF32) return 0;
  std::vector<char> reads;  // of each node; children come before it
  for (const ExprNode& node : formula.nodes) {
    bool own = is_variable(node, element);
    for (const std::int32_t child : node.children)
      own = own || (child >= 0 && reads[static_cast<std::size_t>(child)] != 0);
    reads.push_back(own);
  }
  const auto end = std::ranges::find(root.children, -1);
  if (end == root.children.begin()) return 0;
  const auto last = end - 1;
  const bool is_last = is_variable(formula.nodes[static_cast<std::size_t>(*last)], element);
  const bool is_elsewhere = std::any_of(root.children.begin(), last, [&](std::int32_t index) {
    return reads[static_cast<std::size_t>(index)] != 0;
  });
  return is_last && !is_elsewhere ? static_cast<int>(end - root.children.begin()) : 0;
}

}  // namespace lacuna
