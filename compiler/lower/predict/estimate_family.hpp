// With which instructions an estimate compares, as far as the plan alone tells.
#pragma once

#include "compiler/target/plan.hpp"

namespace lacuna {

bool compares_by_wgmma(const Plan& plan);
/// Tokens in integers, by wgmma and bounds: EstimateKernel::kPairs.
bool estimates_pairs(const Plan& plan, const PredictStep& step);

}  // namespace lacuna
