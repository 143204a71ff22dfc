// A consumer warpgroup of the wgmma family: 64 query rows of each work tile.
//
// Products are issued before their results are needed: the scores of the next step, group of keys
// by group, then this step's weights with V. So the softmax of a group overlaps the products of
// later groups, the product with V, and the products of the other warpgroups:
//
//   S_g = Q K_g, softmax of each group g
//   for each further step:       (kPingPong: wait for the turn)
//                                S'_g = Q K_g for all g, O += P V     issued
//                                (kPingPong: pass the turn on)
//                                S'_g is complete: its softmax, for each g
//                                O is complete: O decays, P = S'
//   O += P V
//
// A warpgroup with a work tile of its own passes on steps without a tile of it: such a step ends
// this loop, and the next step that has one begins it again.
#pragma once

#include "attend/wgmma/consumers/consumer_steps.cuh"
#include "attend/wgmma/consumers/work_tiles.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class WgmmaConsumer {
  using State = ConsumerState<Config, Hooks, Args>;
  using Shape = WgmmaShape<Config>;
  using Message = typename Shape::Message;

 public:
  /// `warpgroup`: 0 .. kWarpgroups - 1.
  __device__ __forceinline__ WgmmaConsumer(const Args& args, const WgmmaSmem<Config>& smem,
                                           int warpgroup)
      : at_(args, smem, warpgroup) {}

  __device__ __forceinline__ void run() {
    if (Shape::kPingPong && at_.warpgroup == Config::kWarpgroups - 1) turn_barrier(0).arrive();
    for_each_row(at_, [this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    at_.await(at_.smem.control()->q_full, at_.queries);
    if constexpr (Shape::kKeepsQueries) load_queries(at_, fragments_, at_.queries);
    for_each_run(at_, step, [this](Message& first) { attend_run(first); });
  }

  /// From `step` to the end of the row, or to a step that is passed on; `step` is then that one.
  __device__ __forceinline__ void attend_run(Message& step) {
    StepScores<Config> scores;
    Decay decay;
    wgmma_begin();
    multiply_queries_keys(at_, fragments_, scores, uniform_over_warp(keys_address(at_)));
    attend_steps(at_, fragments_, scores, decay, step);
    take_output(at_, multiply_last_values(at_, fragments_));
  }

  State at_;
  StepFragments<Config> fragments_;
};

}  // namespace lacuna
