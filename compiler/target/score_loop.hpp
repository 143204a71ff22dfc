// What a kernel does for each score: what is left of the score formula there, and how the mask is
// checked in tiles that it cuts. The plan shows both. They follow from the formulas and the family.
#pragma once

#include "compiler/target/plan_value.hpp"

namespace lacuna {

/// Of a plan whose program has a score formula.
PlanValue score_loop(const Plan& plan);

/// Of a plan whose program has a mask.
PlanValue mask_loop(const Plan& plan);

}  // namespace lacuna
