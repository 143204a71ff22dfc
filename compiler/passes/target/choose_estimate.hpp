// Which family an estimate's products have: wgmma where the target has it and the estimate is the
// largest weight of each tile over all pairs of tokens, in integers.
#pragma once

#include "compiler/passes/pass.hpp"

namespace lacuna {

/// Meaningful for estimates that compare tokens; all others are mma.
Chosen<AttendFamily> choose_estimate_family(const Program& program, const PassContext& context);

}  // namespace lacuna
