// By which instructions an estimate compares, where the plan alone decides that.
#pragma once

#include "compiler/target/plan.hpp"

namespace lacuna {

// In all of these the step has an estimate.

/// What the plan has chosen for the step.
const Chosen<AttendFamily>& estimate_family_of(const Plan& plan, const PredictStep& step);
/// Are the products of the estimate computed by wgmma?
bool compares_by_wgmma(const Plan& plan, const PredictStep& step);
/// Is the step's estimate one of tokens in integers, relative to the softmax of their row, by wgmma
/// (EstimateKernel::kSoftmax)?
bool estimates_softmax(const Plan& plan, const PredictStep& step);
/// Is the step's estimate one of tokens in integers, which wgmma and bounds of their products
/// decide (EstimateKernel::kPairs)?
bool estimates_pairs(const Plan& plan, const PredictStep& step);

}  // namespace lacuna
