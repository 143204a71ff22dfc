#include "compiler/target/score_loop.hpp"

#include "compiler/expr/parts/costly_formulas.hpp"
#include "compiler/expr/parts/mask_parts.hpp"
#include "compiler/expr/parts/score_cost.hpp"

namespace lacuna {
namespace {

PlanValue derived(std::string value, std::string reason) {
  return {"", std::move(value), Origin::kDerived, std::move(reason)};
}

/// What is asked or worked out for each score, of a formula that may be too long to stand in the
/// kernel for each of them.
PlanValue for_each_score(std::string value, std::string reason, bool is_costly, int length) {
  if (!is_costly) return derived(std::move(value), std::move(reason));
  return derived(value + ", in a loop over blocks of keys",
                 reason + "; some " + std::to_string(length) +
                     " instructions, in a copy for each score a kernel takes long to compile");
}
PlanValue asked_for_each_score(const Expr& mask, std::string reason) {
  return for_each_score("asked for each score", std::move(reason), mask_is_costly(mask),
                        mask_length(mask));
}

bool gathers(const Attend& attend) { return attend.columns >= 0; }

bool looks_ahead(const Plan& plan) {
  return plan.attend.consumer.value == Consumer::kWgmmaTileGate;
}

std::string print_ranges(const std::vector<KeyRange>& ranges) {
  return std::to_string(ranges.size()) + (ranges.size() == 1 ? " range" : " ranges") + " of keys";
}

/// "each distance and key"
std::string print_sources(const MaskParts& parts) {
  static constexpr const char* kNames[kMaskSources] = {"distance", "key", "query"};
  std::string text;
  for (std::size_t n = 0; n < kMaskSources; ++n)
    if (!parts.conditions[n].empty())
      text += (text.empty() ? "" : " and ") + std::string(kNames[n]);
  return text;
}

/// Of a mask with conditions.
PlanValue conditions_loop(const MaskParts& parts, bool packs_heads) {
  if (packs_heads)
    return derived("asked for each score", "rows of several heads share no distances");
  const std::string ranges =
      parts.ranges_are_all() ? "" : ", and " + print_ranges(parts.ranges) + " for each row";
  return derived("asked for each " + print_sources(parts) + ranges,
                 parts.is_of_distance() ? "the mask depends on q - k alone"
                                        : "conditions that depend on one of these alone");
}

/// A mask that is asked about each pair, but would be ranges of keys if a parameter that it divides
/// by were declared to be at least 1: "; chunk with a range from 1 on would make it ranges of
/// keys".
std::string missing_range(const Expr& mask) {
  Expr declared = mask;
  std::string name;
  for (const ExprNode& node : mask.nodes) {
    if (node.op != ExprOp::kFloorDivide) continue;
    const ExprNode& divisor = mask.nodes[static_cast<std::size_t>(node.children[1])];
    if (divisor.op != ExprOp::kParameter || mask.parameters[divisor.symbol].least >= 1) continue;
    ParamSymbol& symbol = declared.parameters[divisor.symbol];
    symbol.least = 1;
    if (name.empty()) name = symbol.name;
  }
  if (name.empty() || key_ranges(declared).empty()) return "";
  return "; " + name + " with a range from 1 on would make it ranges of keys";
}

}  // namespace

PlanValue score_loop(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  const ScoreParts parts = split_score(attend.score);
  const FormulaLengths lengths = formula_lengths(parts);
  if (gathers(attend))
    return for_each_score("the whole formula for each score", "keys are gathered",
                          lengths.is_costly(), lengths.of_score);
  const bool shares = !packs_heads(plan);
  return for_each_score(print_score_costs(score_costs(parts, shares)),
                        print_score_form(parts, shares), lengths.is_costly(), lengths.of_score);
}

PlanValue mask_loop(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  if (gathers(attend)) return asked_for_each_score(attend.mask, "keys are gathered");
  const MaskParts parts = split_mask(attend.mask);
  if (parts.ranges.empty())
    return asked_for_each_score(
        attend.mask, "conditions on pairs of query and key" + missing_range(attend.mask));
  if (looks_ahead(plan))
    return asked_for_each_score(
        attend.mask, "ranges of keys make the warps of TileGateConsumer divergent to the compiler");
  if (!parts.terms.empty()) return conditions_loop(parts, packs_heads(plan));
  return derived(print_ranges(parts.ranges) + " for each row", "in tiles that the mask cuts");
}

}  // namespace lacuna
