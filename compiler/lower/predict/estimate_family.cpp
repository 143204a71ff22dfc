#include "compiler/lower/predict/estimate_family.hpp"

namespace lacuna {

namespace {

bool compares_integers_by_wgmma(const Plan& plan, const PredictStep& step) {
  constexpr int kLargestIntegerBits = 8;
  return compares_by_wgmma(plan, step) && step.estimate->bits <= kLargestIntegerBits &&
         !has_cells(step.estimate->rows);
}

}  // namespace

const Chosen<AttendFamily>& estimate_family_of(const Plan& plan, const PredictStep& step) {
  const bool is_last = step.select == last_step(plan.program).select;
  return is_last ? plan.attend.estimate_family : plan.attend.estimate_before_family;
}

bool compares_by_wgmma(const Plan& plan, const PredictStep& step) {
  return estimate_family_of(plan, step).value == AttendFamily::kWgmma;
}

bool estimates_softmax(const Plan& plan, const PredictStep& step) {
  return compares_integers_by_wgmma(plan, step) && step.estimate->normalise == Normalise::kSoftmax;
}

bool estimates_pairs(const Plan& plan, const PredictStep& step) {
  return compares_integers_by_wgmma(plan, step) && !estimates_softmax(plan, step);
}

}  // namespace lacuna
