// The steps of a row in the 16-bit consumers of the wgmma family whose gate, if there is one, is
// decided by the consumers. consumer.cuh draws them.
#pragma once

#include "attend/wgmma/consumers/late_decision.cuh"
#include "attend/wgmma/consumers/plain_weights.cuh"

namespace lacuna {

template <class State>
__device__ __forceinline__ u32 keys_address(const State& at) {
  return at.smem.keys(at.keys.slot());
}
template <class State>
__device__ __forceinline__ u32 values_address(const State& at,
                                              const typename State::Values& values) {
  return at.smem.values(values.slot());
}

/// From `step`, whose S is under way, to the last step of the row, or to one that is passed on;
/// `step` is then that one. The product with V is due for the weights that are left.
template <class State, class Fragments>
__device__ __forceinline__ void attend_steps(State& at, Fragments& fragments,
                                             StepScores<typename State::Config>& scores,
                                             Decay& decay, typename State::Message& step) {
  using Config = typename State::Config;
  using Shape = typename State::Shape;
  using Message = typename State::Message;
  if constexpr (has_denominator<Config>()) {
    weigh_with_max<true>(at, fragments, scores, decay, step);
  } else {
    weigh_plainly(at, scores, step, 0);
  }
  if (Shape::kOwnRows && decay.applies) follow_lagging_max(at.output, decay.factor);
  pack_weights(at, fragments, scores);
  at.finish_store();
  while (!step.has(Message::kLastOfRow)) {
    step = at.receive();
    if (Shape::kOwnRows && step.has(Message::kSkipped)) break;
    const auto values = at.values();
    const u32 k = uniform_over_warp(keys_address(at));
    const u32 v = uniform_over_warp(values_address(at, values));
    if constexpr (Shape::kPingPong) turn_barrier(at.warpgroup).sync();
    wgmma_begin();
    multiply_queries_keys(at, fragments, scores, k);
    if constexpr (Shape::kWarpsKnow) settle(at, fragments);
    at.await(at.smem.control()->v_full, values);
    multiply_values(at, fragments, v);
    if constexpr (Shape::kPingPong) turn_barrier((at.warpgroup + 1) % Config::kWarpgroups).arrive();
    if constexpr (!has_denominator<Config>()) {
      weigh_plainly(at, scores, step, 1);
      take_output(at, values);
    } else if constexpr (Shape::kWarpsKnow) {
      weigh_under_gate(at, fragments, scores, decay, step, values);
    } else if constexpr (Shape::kHasGate) {
      weigh_with_max<false>(at, fragments, scores, decay, step);
      take_output(at, values);
      if (decay.applies) follow_lagging_max(at.output, decay.factor);
    } else {
      const bool is_weighed = softmax_without_max(at, fragments, scores, step);
      take_output(at, values);
      if (__builtin_expect(!is_weighed, false)) recompute_and_softmax(at, fragments, scores, step);
    }
    pack_weights(at, fragments, scores);
  }
  if constexpr (!has_denominator<Config>()) note_plain_sum(at.softmax);
}

/// Issues the product with V that is due; returns where V lies.
template <class State, class Fragments>
__device__ __forceinline__ typename State::Values multiply_last_values(State& at,
                                                                       Fragments& fragments) {
  const auto values = at.values();
  if constexpr (State::Shape::kWarpsKnow) settle(at, fragments);
  at.await(at.smem.control()->v_full, values);
  multiply_values(at, fragments, uniform_over_warp(values_address(at, values)));
  return values;
}

}  // namespace lacuna
