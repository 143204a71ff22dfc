// The product with V of an Int8Consumer's step.
#pragma once

#include "attend/wgmma/consumers/int8/int8_gate.cuh"
#include "attend/wgmma/scores/e4m3_values.cuh"

namespace lacuna {

/// Issues the product of the weights with the values in `slot`, of those groups that a gate lets
/// pass. Those are all, most often, and on that way nothing else is asked.
template <class State, class Values>
__device__ __forceinline__ void multiply_values(State& at, Values& values,
                                                const DueVotes<typename State::Config>& due,
                                                const typename State::Ring& slot) {
  using Shape = typename State::Shape;
  bool all_count = !Shape::kHasGate;
  if constexpr (Shape::kVotesOnSteps) all_count = due.all_count;
  if (__builtin_expect(all_count, true)) {
    at.await(at.smem.control()->v_full, slot);
    values.issue_all(at.output, at.smem.values(slot.slot()));
  } else if constexpr (Shape::kHasGate) {
    if constexpr (Shape::kVotesOnSteps) settle_votes(at, due);
    at.await(at.smem.control()->v_full, slot);
    values.issue(at.output, at.smem.values(slot.slot()), at.has_weights);
  }
}

/// `decay`: of what the values were weighted with.
template <class State, class Values>
__device__ __forceinline__ void complete_values(State& at, Values& values,
                                                const typename State::Ring& slot,
                                                const float (&decay)[2]) {
  wgmma_wait<0>();
  values.complete(at.output, decay);
  at.release_values(slot);
}

}  // namespace lacuna
