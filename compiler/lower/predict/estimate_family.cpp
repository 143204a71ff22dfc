#include "compiler/lower/predict/estimate_family.hpp"

namespace lacuna {

bool compares_by_wgmma(const Plan& plan) {
  return plan.attend.estimate_family.value == AttendFamily::kWgmma;
}

bool estimates_pairs(const Plan& plan) {
  constexpr int kLargestIntegerBits = 8;
  const auto* estimate = find_op<Estimate>(plan.program);
  return estimate != nullptr && compares_by_wgmma(plan) && estimate->bits <= kLargestIntegerBits;
}

}  // namespace lacuna
