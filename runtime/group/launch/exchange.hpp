// What ranks send each other in a launch: by messages in the order of one stream, or by copies
// between memory that they share.
//
// Copies. A rank writes what it sends into the buffers of others, and never reads theirs: a copy
// out of memory of another GPU may be run by that GPU, behind whatever its own rank asks for
// meanwhile. Each flag of a rank is set by one other rank, to the number of the launch:
//
//   finished       that rank has ended the launch: its buffers may be written again
//   arrived(c)     it has written its part of the inputs of chunk c
//   returned(c)    it has written its results of chunk c
//
// All writes of a chunk are asked for before a rank waits for that chunk of others, so that ranks
// do not wait for each other in a ring whatever their GPUs run one after the other. What waits for
// others is on the group's streams: a plan that is destroyed waits for those, up to the deadline.
#pragma once

#include "runtime/group/launch/piece_arguments.hpp"

namespace lacuna::group {

struct ExchangeContext {
  GroupPlan& plan;
  const LaunchPlaces places;
  Diagnostics& diagnostics;
  CUstream outgoing = nullptr, incoming = nullptr;  ///< the same for messages; null on the CPU
  std::uint32_t number = 0;                         ///< of the launch, for flags

  bool copies() const { return plan.traffic.by_copies; }
};

/// On `outgoing`; what comes is there on `incoming`.
bool exchange_inputs(const ExchangeContext& context, std::size_t chunk);
/// Behind the launches on `outgoing` that the results wait for.
bool exchange_results(const ExchangeContext& context, std::size_t chunk);
/// Behind all launches and both streams, on the caller's.
bool end_exchange(const ExchangeContext& context, CUstream caller);

}  // namespace lacuna::group
