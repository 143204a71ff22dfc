#include "compiler/target/score_loop.hpp"

#include "compiler/expr/bounds/key_ranges.hpp"
#include "compiler/expr/parts/score_cost.hpp"

namespace lacuna {
namespace {

PlanValue derived(std::string value, std::string reason) {
  return {"", std::move(value), Origin::kDerived, std::move(reason)};
}

bool gathers(const Attend& attend) { return attend.columns >= 0; }

bool looks_ahead(const Plan& plan) {
  return plan.attend.consumer.value == Consumer::kWgmmaTileGate;
}

}  // namespace

PlanValue score_loop(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  if (gathers(attend)) return derived("the whole formula for each score", "keys are gathered");
  const ScoreParts parts = split_score(attend.score);
  const bool shares = !packs_heads(plan);
  return derived(print_score_costs(score_costs(parts, shares)), print_score_form(parts, shares));
}

PlanValue mask_loop(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  const std::string asked = "asked for each score";
  if (gathers(attend)) return derived(asked, "keys are gathered");
  const std::size_t ranges = key_ranges(attend.mask).size();
  if (ranges == 0) return derived(asked, "the mask is more than bounds on k");
  if (looks_ahead(plan))
    return derived(asked,
                   "ranges of keys make the warps of TileGateConsumer divergent to the compiler");
  return derived(
      std::to_string(ranges) + (ranges == 1 ? " range" : " ranges") + " of keys for each row",
      "in tiles that the mask cuts");
}

}  // namespace lacuna
