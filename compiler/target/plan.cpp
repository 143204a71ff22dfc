// What follows from a plan, and where a value of it comes from, as a word.
#include "compiler/target/plan.hpp"

namespace lacuna {

bool has_tiles_of_heads(const Attend& attend) {
  return attend.list_indices >= 0 || attend.columns >= 0 || attend.gate.has_value() ||
         attend.q_scale >= 0;
}

Plan plan_of_packed(const Plan& plan) {
  Plan packed{plan.target, plan.program, *plan.packed, {}, true};
  Attend& attend = attend_of(packed.program);
  attend.list_indices = attend.list_counts = -1;
  return packed;
}

bool has_sequence_tiles(const Plan& plan) {
  return plan.attend.family.value == AttendFamily::kWgmma &&
         plan.program.batch != BatchLayout::kUniform;
}

bool has_kept_tiles(const Plan& plan) { return plan.attend.walk.value == TileWalk::kSequenceKept; }

bool packs_heads(const Plan& plan) {
  return has_sequence_tiles(plan) &&
         (plan.is_packed || !has_tiles_of_heads(attend_of(plan.program)));
}

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kSpec:
      return "spec";
    case Origin::kDefault:
      return "default";
    case Origin::kDerived:
      return "derived";
    case Origin::kTuned:
      return "tuned";
    case Origin::kCaller:
      return "caller";
  }
  return "";
}

}  // namespace lacuna
