#include "compiler/lower/predict/estimate_family.hpp"

namespace lacuna {

bool compares_by_wgmma(const Plan& plan) {
  return plan.attend.estimate_family.value == AttendFamily::kWgmma;
}

bool estimates_pairs(const Plan& plan, const PredictStep& step) {
  constexpr int kLargestIntegerBits = 8;
  return compares_by_wgmma(plan) && step.estimate->bits <= kLargestIntegerBits;
}

}  // namespace lacuna
