// The text of a plan: one line for each value, with its origin.
#include "compiler/target/plan.hpp"

#include "compiler/target/plan_values.hpp"

namespace lacuna {

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

std::string print_plan(const Plan& plan) {
  constexpr std::size_t kOriginColumn = 30, kLeastGap = 2;
  std::string text = "plan @" + plan.program.name + " on " + plan.target.name + "\n";
  for (const PlanValue& value : plan_values(plan)) {
    const std::string line = value.name + " = " + value.value;
    const std::size_t gap = line.size() < kOriginColumn ? kOriginColumn - line.size() : kLeastGap;
    text += line + std::string(gap, ' ') + "(" + std::string(name_of(value.origin)) +
            (value.reason.empty() ? "" : ": " + value.reason) + ")\n";
  }
  return text;
}

}  // namespace lacuna
