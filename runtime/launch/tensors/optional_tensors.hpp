// Checks of optional tensors that say more than a rule for each: those that stand for several
// extents, and those that are passed together.
#pragma once

#include "runtime/base/arguments.hpp"
#include "runtime/launch/tensors/tensor_check.hpp"
#include "runtime/launch/tensors/tensor_rules.hpp"

namespace lacuna {

/// Scales of k and v of e4m3 are of whole tensors, heads, entries, or both. An extent of 1 stands
/// for all: its stride becomes 0.
void check_scales(const Extents& extents, Mismatches& mismatches, BoundLaunch& bound);

/// Summaries that stay: room for every tile and entry, and what is known of them.
void check_summaries(const Extents& extents, Mismatches& mismatches, const BoundLaunch& bound);

}  // namespace lacuna
