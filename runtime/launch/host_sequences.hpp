// A batch of sequences on the CPU: each is run as a launch of its own, on views of its rows; keys
// and values in pages are gathered first.
#pragma once

#include "runtime/launch/host_launch.hpp"

namespace lacuna {

/// False with diagnostics if a start, a length or a page lies outside of what was passed.
bool run_sequences_on_host(const KernelState& kernel, const BoundLaunch& bound,
                           const KeptBits& kept, Diagnostics& diagnostics);

/// The same of a spec with branches. `launches`: what each of them reports, of the whole batch.
bool run_branches_of_sequences_on_host(const KernelState& kernel, const BoundLaunch& bound,
                                       const BranchLaunches& launches, Diagnostics& diagnostics);

}  // namespace lacuna
