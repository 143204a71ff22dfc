#include "compiler/expr/parts/mask_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/fold.hpp"
#include "compiler/expr/nodes/along_diagonal.hpp"
#include "compiler/expr/nodes/constant_parts.hpp"

namespace lacuna {
namespace {

using Nodes = std::vector<std::size_t>;

std::size_t child_of(const ExprNode& node, std::size_t n) {
  return static_cast<std::size_t>(node.children[n]);
}

/// What `op`, kAnd or kOr, joins.
void collect_operands(const Expr& mask, std::size_t node, ExprOp op, Nodes& found) {
  const ExprNode& root = mask.nodes[node];
  if (root.op != op) return found.push_back(node);
  for (const std::size_t n : {0, 1}) collect_operands(mask, child_of(root, n), op, found);
}

/// `nodes` joined by `op`; empty if there is none.
Expr joined(const Expr& mask, ExprOp op, const Nodes& nodes) {
  if (nodes.empty()) return {};
  ExprBuilder builder;
  const std::vector<int> moved = builder.copy_each(mask.nodes);
  int all = moved[nodes.front()];
  for (const std::size_t node : nodes) all = builder.make(op, all, moved[node]);
  return fold(builder.extract(all, mask.parameters));
}

/// Joins conditions of `mask` by the operators that it has.
class ConditionJoiner {
 public:
  ConditionJoiner(const Expr& mask, MaskParts& parts) : mask_(mask), parts_(parts) {
    constexpr Variable kQuery[] = {Variable::kQ}, kKey[] = {Variable::kK};
    is_of_distance_ = nodes_of_distance(mask);
    reads_query_ = changing_nodes(mask, kQuery), reads_key_ = changing_nodes(mask, kKey);
  }

  /// The place of the term; nullopt: a node is none of these, or there are too many.
  std::optional<int> join(ExprOp op, const Nodes& nodes) {
    std::optional<int> all;
    const auto add = [&](std::optional<int> term) {
      if (!term) return false;
      all = all ? place({op, MaskSource::kDistance, *all, *term}) : term;
      return true;
    };
    for (const MaskSource source : {MaskSource::kDistance, MaskSource::kKey, MaskSource::kQuery}) {
      Nodes own;
      for (const std::size_t node : nodes)
        if (source_of(node) == source) own.push_back(node);
      if (!own.empty() && !add(condition(source, joined(mask_, op, own)))) return std::nullopt;
    }
    for (const std::size_t node : nodes)
      if (!source_of(node) && !add(join_below(node))) return std::nullopt;
    return all;
  }

  std::optional<MaskSource> source_of(std::size_t node) const {
    if (is_of_distance_[node]) return MaskSource::kDistance;
    if (!reads_query_[node]) return MaskSource::kKey;
    if (!reads_key_[node]) return MaskSource::kQuery;
    return std::nullopt;
  }

 private:
  std::optional<int> join_below(std::size_t node) {
    const ExprNode& root = mask_.nodes[node];
    if (root.op == ExprOp::kNot) {
      const auto term = join(ExprOp::kAnd, {child_of(root, 0)});
      if (!term) return std::nullopt;
      return place({ExprOp::kNot, MaskSource::kDistance, *term, *term});
    }
    if (root.op != ExprOp::kAnd && root.op != ExprOp::kOr) return std::nullopt;
    Nodes operands;
    collect_operands(mask_, node, root.op, operands);
    return join(root.op, operands);
  }

  std::optional<int> condition(MaskSource source, Expr expr) {
    std::vector<Expr>& found = parts_.conditions[static_cast<std::size_t>(source)];
    if (found.size() == kMostConditions) return std::nullopt;
    found.push_back(std::move(expr));
    return place({ExprOp::kLiteral, source, static_cast<int>(found.size()) - 1, 0});
  }

  int place(const MaskTerm& term) {
    parts_.terms.push_back(term);
    return static_cast<int>(parts_.terms.size()) - 1;
  }

  const Expr& mask_;
  MaskParts& parts_;
  std::vector<bool> is_of_distance_, reads_query_, reads_key_;
};

/// Splits a mask into conditions on the distance, and ranges for all its other conditions. nullopt:
/// the mask has no condition on the distance, or its other conditions are no ranges.
std::optional<MaskParts> split_by_distance(const Expr& mask, const Nodes& conditions) {
  MaskParts parts;
  ConditionJoiner joiner(mask, parts);
  Nodes of_distance, others;
  for (const std::size_t node : conditions)
    (joiner.source_of(node) == MaskSource::kDistance ? of_distance : others).push_back(node);
  parts.ranges =
      others.empty() ? std::vector<KeyRange>(1) : key_ranges(joined(mask, ExprOp::kAnd, others));
  if (of_distance.empty() || parts.ranges.empty()) return std::nullopt;
  joiner.join(ExprOp::kAnd, of_distance);
  return parts;
}

/// Splits a mask into ranges, for as many of its conditions as ranges can stand for, and conditions
/// on the distance, the key or the query. nullopt: another condition is left.
std::optional<MaskParts> split_by_ranges(const Expr& mask, const Nodes& conditions) {
  MaskParts parts;
  Nodes of_ranges, others;
  parts.ranges.emplace_back();
  for (const std::size_t node : conditions) {
    of_ranges.push_back(node);
    std::vector<KeyRange> ranges = key_ranges(joined(mask, ExprOp::kAnd, of_ranges));
    if (!ranges.empty()) {
      parts.ranges = std::move(ranges);
      continue;
    }
    of_ranges.pop_back();
    others.push_back(node);
  }
  if (!ConditionJoiner(mask, parts).join(ExprOp::kAnd, others)) return std::nullopt;
  return parts;
}

}  // namespace

bool MaskParts::ranges_are_all() const {
  return ranges.size() == 1 && ranges[0].first.empty() && ranges[0].last.empty();
}

MaskParts split_mask(const Expr& mask) {
  MaskParts parts;
  if (mask.empty()) {
    parts.ranges.emplace_back();
    return parts;
  }
  parts.ranges = key_ranges(mask);
  if (!parts.ranges.empty()) return parts;
  Nodes conditions;
  collect_operands(mask, mask.nodes.size() - 1, ExprOp::kAnd, conditions);
  if (auto split = split_by_distance(mask, conditions)) return std::move(*split);
  if (auto split = split_by_ranges(mask, conditions)) return std::move(*split);
  return {};
}

}  // namespace lacuna
