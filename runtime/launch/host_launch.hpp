// A launch on the CPU: the ops before attend, an executor for attend, the ops behind it.
#pragma once

#include "runtime/cpu/ops/run_ops.hpp"
#include "runtime/engine/kernel.hpp"
#include "runtime/launch/branches.hpp"

namespace lacuna {

/// Where the ops find or leave the decision that the caller keeps.
KeptBits kept_bits(const KernelState& kernel, const lacuna_selection* selection);

/// Runs before it returns. Takes memory for what the ops make. `first_b`: what formulas see as b
/// of the first batch entry; `sums`: of the branches of a spec that has them.
bool run_on_host(const KernelState& kernel, const BoundLaunch& bound, KeptBits kept,
                 std::int32_t first_b, Diagnostics& diagnostics, const BranchSums& sums = {});

/// The branches of a spec, one after the other. `shape`: the caller's. Counts their selections.
bool run_branches_on_host(const KernelState& kernel, const LaunchShape& shape,
                          const BranchLaunches& launches, std::int32_t first_b,
                          Diagnostics& diagnostics);

/// Bytes of a selection's data on the CPU; 0 if the program keeps nothing.
std::size_t host_mask_bytes(const KernelState& kernel, const LaunchShape& shape);

}  // namespace lacuna
