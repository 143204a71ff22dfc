// The plan of a second attend of a batch of sequences by wgmma, where each head has tiles or a gate
// of its own: of sequences of few queries, whose heads it packs in one work tile.
#pragma once

#include <optional>

#include "compiler/passes/pass.hpp"

namespace lacuna {

/// After all passes, of a plan without errors. Nothing where attend needs no second kernel, or can
/// have none, because more than a predictor's lists and a gate depends on the head.
std::optional<AttendPlan> pack_few_queries(const Plan& plan, const PassContext& context);

}  // namespace lacuna
