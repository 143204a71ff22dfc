// With which instructions an estimate compares, as far as the plan alone tells.
#pragma once

#include "compiler/target/plan.hpp"

namespace lacuna {

bool compares_by_wgmma(const Plan& plan);
/// Is the step's estimate one of tokens in integers, which wgmma and bounds of their products
/// decide (EstimateKernel::kPairs)? The step has one.
bool estimates_pairs(const Plan& plan, const PredictStep& step);

}  // namespace lacuna
