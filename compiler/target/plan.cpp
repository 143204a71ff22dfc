// What follows from a plan, and where a value of it comes from, as a word.
#include "compiler/target/plan.hpp"

namespace lacuna {

bool packs_heads(const Plan& plan) {
  return plan.attend.family.value == AttendFamily::kWgmma &&
         plan.program.batch != BatchLayout::kUniform;
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
