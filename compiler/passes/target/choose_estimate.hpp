// Chooses the family of an estimate's products: wgmma if the target has it and a kernel exists for
// what is compared and reduced (templates/select: cells, token_pairs, token_softmax, exact).
#pragma once

#include "compiler/passes/pass.hpp"

namespace lacuna {

/// Of a step's estimate; meaningful where it compares tokens or cells, all others are mma.
Chosen<AttendFamily> choose_estimate_family(const Program& program, const PredictStep& step,
                                            const PassContext& context);

}  // namespace lacuna
