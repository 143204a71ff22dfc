// What a consumer warpgroup of the wgmma family does that has no queries in any work tile of the
// launch: sequences of few queries fill the first warpgroup alone. It gives back all that it is
// handed at once, so that no producer has to know of it, and leaves the tensor cores to the other.
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"

namespace lacuna {

/// In the order of loads: keys of a step before the values of the step before it.
template <class State>
__device__ __forceinline__ void pass_steps(State& at) {
  using Message = typename State::Message;
  const auto& control = *at.smem.control();
  Message step = at.receive();
  while (!step.has(Message::kEnd)) {
    const bool had_queries = step.has(Message::kLastOfRow) && step.tiles[0].exists();
    at.release_keys();
    const typename State::Values values = at.values();
    step = at.receive();
    at.await(control.v_full, values);
    at.release_values(values);
    if (!had_queries) continue;
    at.await(control.q_full, at.queries);
    at.release_queries();
  }
}

}  // namespace lacuna
