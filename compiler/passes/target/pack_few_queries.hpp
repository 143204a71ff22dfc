// The plan of a second attend of a batch of sequences by wgmma, where each head keeps tiles of its
// own: of sequences of few queries, whose heads it packs in one work tile.
#pragma once

#include <optional>

#include "compiler/passes/pass.hpp"

namespace lacuna {

/// After all passes, of a plan without errors. Nothing where attend needs no second kernel, or can
/// have none: without bits of a predictor, or where more than these depends on the head.
std::optional<AttendPlan> pack_few_queries(const Plan& plan, const PassContext& context);

}  // namespace lacuna
