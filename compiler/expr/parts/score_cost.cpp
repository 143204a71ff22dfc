#include "compiler/expr/parts/score_cost.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler/expr/parts/element_parts.hpp"
#include "compiler/expr/parts/shared_parts.hpp"

namespace lacuna {
namespace {

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

/// The rest of a score, and what a warp works out once of it.
SharedParts shared_by(const ScoreParts& parts, bool shares) {
  SharedParts none{.of_distance = {}, .of_key = {}, .rest = parts.rest};
  return shares ? shared_parts(parts.rest).value_or(std::move(none)) : none;
}

/// What a rest is made of: "a rest with a part of q - k", or without "a rest with" where nothing
/// else is asked of q and k.
std::string print_rest(const SharedParts& shared) {
  const ElementParts elements = element_parts(shared.rest);
  const Expr& rest = elements.rest;
  const auto lines = std::ranges::count_if(
      elements.parts, [](const ElementPart& part) { return part.line.has_value(); });
  std::string parts;
  for (const auto& [is_there, name] :
       {std::pair{lines > 0, "a table along a line"},
        std::pair{lines < std::ssize(elements.parts), "a table by places of q and of k"},
        std::pair{!shared.of_distance.empty(), "a part of q - k"},
        std::pair{!shared.of_key.empty(), "a part of k"}})
    if (is_there) parts += (parts.empty() ? "" : " and ") + std::string(name);
  if (parts.empty()) return "rest";
  const bool asks_more = uses(rest, Variable::kQ) || uses(rest, Variable::kK);
  return (asks_more ? "a rest with " : "") + parts;
}

}  // namespace

ScoreCosts score_costs(const ScoreParts& parts, bool shares) {
  ScoreCosts costs;
  ScoreCost& cost = costs.of_score;
  cost.multiply_adds = parts.slope.empty() ? 1 : 2;
  if (!parts.core.empty()) ++cost.float_operations;  // s = product * scale
  add_along_row(cost, parts.core);
  if (parts.rest.empty()) return costs;
  ++cost.multiply_adds;
  const SharedParts shared = shared_by(parts, shares);
  if (!shared.of_distance.empty()) cost.shuffle_tenths += kDistanceTenths;
  if (!shared.of_key.empty()) cost.shuffle_tenths += kKeyTenths;
  costs.of_distance = cost_along_row(shared.of_distance);
  costs.of_key = cost_along_row(shared.of_key);
  const ElementParts elements = element_parts(shared.rest);
  for (const ElementPart& part : elements.parts) {
    ++cost.loads;
    if (!part.line) cost.shuffle_tenths += kKeyTenths;
    for (const IndexParts& index : part.indices) add_along_row(costs.of_key, index.of_key);
  }
  add_along_row(cost, elements.rest);
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
  if (parts.rest_is_inside) text += " of s";
  if (!parts.offset.empty()) text += parts.slope.empty() ? " + constant in k" : " + affine in k";
  if (parts.rest.empty()) return text;
  const SharedParts shared = shared_by(parts, shares);
  text += " + " + print_rest(shared);
  const bool has_distance = !shared.of_distance.empty(), has_key = !shared.of_key.empty();
  if (!has_distance && !has_key) return text;
  return text + ", worked out once for each " +
         (!has_key        ? "distance"
          : !has_distance ? "key"
                          : "distance and key") +
         " of 16 queries";
}

}  // namespace lacuna
