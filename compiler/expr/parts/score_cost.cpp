#include "compiler/expr/parts/score_cost.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/expr/parts/constant_parts.hpp"
#include "compiler/expr/parts/shared_parts.hpp"
#include "compiler/expr/parts/table_line.hpp"

namespace lacuna {
namespace {

int& count_of_kind(ScoreCost& cost, const ExprNode& node) {
  if (is_special_function(node.op)) return cost.special_functions;
  switch (node.op) {
    case ExprOp::kParameter:
      return cost.loads;
    case ExprOp::kToF32:
      return cost.integer_operations;
    case ExprOp::kSelect:
      return cost.decisions;
    default:
      break;
  }
  if (node.type == ExprType::kBool) return cost.decisions;
  return node.type == ExprType::kI32 ? cost.integer_operations : cost.float_operations;
}

/// Adds the nodes that change with s or k.
void add_changing_nodes(ScoreCost& cost, const Expr& part) {
  constexpr Variable kAlongRow[] = {Variable::kS, Variable::kK};
  const std::vector<bool> changes = changing_nodes(part, kAlongRow);
  for (std::size_t n = 0; n < part.nodes.size(); ++n)
    if (changes[n] && part.nodes[n].op != ExprOp::kVariable) ++count_of_kind(cost, part.nodes[n]);
}

std::string print_score_cost(const ScoreCost& cost) {
  std::string text;
  for (const auto& [count, name] :
       {std::pair{cost.multiply_adds, "FFMA"}, std::pair{cost.float_operations, "other f32"},
        std::pair{cost.special_functions, "special"}, std::pair{cost.loads, "load"},
        std::pair{cost.integer_operations, "integer"},
        std::pair{cost.decisions, "compare or select"}}) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  if (cost.shuffle_tenths == 0) return text;
  return text + ", " + std::to_string(cost.shuffle_tenths / 10) + "." +
         std::to_string(cost.shuffle_tenths % 10) + " shuffle";
}

// Rows q and q + 8 of a lane share all but the outermost of their values of distances, and all of
// those of keys.
constexpr int kDistanceTenths = 6, kKeyTenths = 5;

/// What a warp works out once, if it shares anything.
std::optional<SharedParts> shared_by(const ScoreParts& parts, bool shares) {
  return shares ? shared_parts(parts.rest) : std::nullopt;
}

}  // namespace

ScoreCost cost_along_row(const Expr& part) {
  ScoreCost cost;
  add_changing_nodes(cost, part);
  return cost;
}

ScoreCosts score_costs(const ScoreParts& parts, bool shares) {
  ScoreCosts costs;
  ScoreCost& cost = costs.of_score;
  cost.multiply_adds = parts.slope.empty() ? 1 : 2;
  if (!parts.core.empty()) ++cost.float_operations;  // s = product * scale
  add_changing_nodes(cost, parts.core);
  if (parts.rest.empty()) return costs;
  ++cost.multiply_adds;
  if (const auto shared = shared_by(parts, shares)) {
    if (!shared->of_distance.empty()) cost.shuffle_tenths += kDistanceTenths;
    if (!shared->of_key.empty()) cost.shuffle_tenths += kKeyTenths;
    add_changing_nodes(cost, shared->rest);
    costs.of_distance = cost_along_row(shared->of_distance);
    costs.of_key = cost_along_row(shared->of_key);
  } else if (table_line(parts.rest)) {
    ++cost.loads;
  } else {
    add_changing_nodes(cost, parts.rest);
  }
  return costs;
}

std::string print_score_costs(const ScoreCosts& costs) {
  std::string text = print_score_cost(costs.of_score) + " for each score";
  for (const auto& [cost, name] :
       {std::pair{costs.of_distance, "distance"}, std::pair{costs.of_key, "key"}})
    if (cost != ScoreCost{}) text += "; " + print_score_cost(cost) + " for each " + name;
  return text;
}

std::string print_score_form(const ScoreParts& parts, bool shares) {
  std::string text = parts.factor.empty() ? "" : "factor * ";
  text += parts.core.empty() ? "s" : "core";
  if (!parts.offset.empty()) text += parts.slope.empty() ? " + constant in k" : " + affine in k";
  if (parts.rest.empty()) return text;
  const auto shared = shared_by(parts, shares);
  if (!shared) return text + (table_line(parts.rest) ? " + table along a line" : " + rest");
  const bool has_both = !shared->of_distance.empty() && !shared->of_key.empty();
  const std::string what = has_both                 ? "parts of q - k and of k"
                           : shared->of_key.empty() ? "a part of q - k"
                                                    : "a part of k";
  const bool reads_more = uses(shared->rest, Variable::kQ) || uses(shared->rest, Variable::kK);
  return text + " + " + (reads_more ? "a rest with " : "") + what + ", worked out once for each " +
         (has_both                 ? "distance and key of 16 queries"
          : shared->of_key.empty() ? "distance of 16 queries"
                                   : "key of 16 queries");
}

}  // namespace lacuna
