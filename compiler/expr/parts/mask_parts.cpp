#include "compiler/expr/parts/mask_parts.hpp"

#include <cstddef>
#include <cstdint>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/fold.hpp"
#include "compiler/expr/parts/along_diagonal.hpp"

namespace lacuna {
namespace {

/// The conditions that all have to hold.
void collect_conditions(const Expr& mask, std::size_t node, std::vector<std::size_t>& found) {
  const ExprNode& root = mask.nodes[node];
  if (root.op != ExprOp::kAnd) return found.push_back(node);
  for (const std::int32_t child : {root.children[0], root.children[1]})
    collect_conditions(mask, static_cast<std::size_t>(child), found);
}

/// All of `conditions`; empty if there is none.
Expr joined(const Expr& mask, const std::vector<std::size_t>& conditions) {
  if (conditions.empty()) return {};
  ExprBuilder builder;
  std::vector<int> moved;
  for (const ExprNode& node : mask.nodes)
    moved.push_back(builder.copy(node, moved_children(node, moved)));
  int all = moved[conditions.front()];
  for (const std::size_t condition : conditions)
    all = builder.make(ExprOp::kAnd, all, moved[condition]);
  return fold(builder.extract(all, mask.parameters));
}

}  // namespace

MaskParts split_mask(const Expr& mask) {
  MaskParts parts;
  if (mask.empty()) {
    parts.ranges.emplace_back();
    return parts;
  }
  parts.ranges = key_ranges(mask);
  if (!parts.ranges.empty()) return parts;
  const std::vector<bool> is_of_distance = nodes_of_distance(mask);
  std::vector<std::size_t> conditions, of_distance, others;
  collect_conditions(mask, mask.nodes.size() - 1, conditions);
  for (const std::size_t condition : conditions)
    (is_of_distance[condition] ? of_distance : others).push_back(condition);
  if (of_distance.empty()) return parts;
  MaskParts split = split_mask(joined(mask, others));
  if (split.ranges.empty()) return parts;
  split.of_distance = joined(mask, of_distance);
  return split;
}

}  // namespace lacuna
