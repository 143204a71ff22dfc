#include "compiler/lower/predict/estimate_family.hpp"

namespace lacuna {

namespace {

bool compares_integers_by_wgmma(const Plan& plan, const PredictStep& step) {
  constexpr int kLargestIntegerBits = 8;
  return compares_by_wgmma(plan, step) && step.estimate->bits <= kLargestIntegerBits;
}

}  // namespace

bool compares_by_wgmma(const Plan& plan, const PredictStep& step) {
  return plan.attend.estimate_family.value == AttendFamily::kWgmma &&
         step.select == last_step(plan.program).select;
}

bool estimates_softmax(const Plan& plan, const PredictStep& step) {
  return compares_integers_by_wgmma(plan, step) && step.estimate->normalise == Normalise::kSoftmax;
}

bool estimates_pairs(const Plan& plan, const PredictStep& step) {
  return compares_integers_by_wgmma(plan, step) && !estimates_softmax(plan, step);
}

}  // namespace lacuna
