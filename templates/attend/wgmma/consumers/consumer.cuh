// A consumer warpgroup of the wgmma family: 64 query rows of each work tile.
//
// Products are issued before their results are needed: the scores of the next step, group of keys
// by group, then this step's weights with V. So the softmax of a group overlaps the products of
// later groups, the product with V, and the products of the other warpgroups:
//
//   S_g = Q K_g, softmax of each group g
//   for each further step:       (wait for the turn, if warpgroups take turns)
//                                S'_g = Q K_g for all g, O += P V     issued
//                                (pass the turn on)
//                                S'_g is complete: its softmax, for each g
//                                O is complete: O decays, P = S'
//   O += P V                     (and S_g of the next row, if rows are chained)
//
// A warpgroup with a work tile of its own passes on steps without a tile of it: such a step ends
// this loop, and the next step that has one begins it again.
#pragma once

#include "attend/wgmma/consumers/step_softmax.cuh"
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
    if constexpr (Shape::kChainsRows) {
      attend_chained_rows();
    } else {
      for_each_row(at_, [this](const Message& first) { attend_row(first); });
    }
  }

 private:
  /// Rows whose products follow one another: S of the next row's first step is issued behind the
  /// last product with V, before O of this row is stored.
  __device__ __forceinline__ void attend_chained_rows() {
    StepScores<Config> scores;
    Decay decay;
    Message step = at_.receive();
    begin_scores(scores, step);
    while (!step.has(Message::kEnd)) {
      at_.row = at_.reload_row();
      begin_row(at_);
      Message next;
      if (takes_part(at_, step)) {
        attend_steps(scores, decay, step);
        const auto values = multiply_last_values();
        at_.queries.advance();
        next = at_.receive();
        begin_scores(scores, next);
        wgmma_wait<Shape::kGroups>();
        fence_accumulator(at_.output);
        at_.release_values(values);
        write_output(at_);
      } else {
        wgmma_wait<0>();
        pass_over(at_);
        next = at_.receive();
        begin_scores(scores, next);
        // Reconverge; otherwise the compiler assumes divergence and adds WARPSYNCs.
        __syncwarp();
      }
      write_rest(at_);
      at_.rows.advance();
      step = next;
    }
    wgmma_wait<0>();
    at_.finish_store();
  }

  /// Issues S of the step just received. A step without keys, and the end, have products that
  /// nobody reads, with the queries before, which nothing overwrites yet: a branch around the
  /// products would part them from what waits for them.
  __device__ __forceinline__ void begin_scores(StepScores<Config>& scores, const Message& step) {
    const bool has_queries = !step.has(Message::kEnd) && step.tiles[0].exists();
    if (has_queries) at_.await(at_.smem.control()->q_full, at_.queries);
    load_queries(at_, fragments_, has_queries ? at_.queries : at_.queries.before());
    wgmma_begin();
    multiply_queries_keys(at_, fragments_, scores, uniform_over_warp(keys_of(at_.keys)));
  }

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
    multiply_queries_keys(at_, fragments_, scores, uniform_over_warp(keys_of(at_.keys)));
    attend_steps(scores, decay, step);
    take_output(at_, multiply_last_values());
  }

  /// The same, from when S of `step` is under way to when its weights are there.
  __device__ __forceinline__ void attend_steps(StepScores<Config>& scores, Decay& decay,
                                               Message& step) {
    weigh_with_max<true>(at_, fragments_, scores, decay, step);
    if (Shape::kOwnRows && decay.applies) follow_reference(at_.output, decay.factor);
    pack_weights(at_, fragments_, scores);
    at_.finish_store();
    while (!step.has(Message::kLastOfRow)) {
      step = at_.receive();
      if (Shape::kOwnRows && step.has(Message::kSkipped)) break;
      const auto values = at_.values();
      const u32 k = uniform_over_warp(keys_of(at_.keys));
      const u32 v = uniform_over_warp(values_of(values));
      if constexpr (Shape::kPingPong) turn_barrier(at_.warpgroup).sync();
      wgmma_begin();
      multiply_queries_keys(at_, fragments_, scores, k);
      at_.await(at_.smem.control()->v_full, values);
      multiply_values(at_, fragments_, v);
      if constexpr (Shape::kPingPong)
        turn_barrier((at_.warpgroup + 1) % Config::kWarpgroups).arrive();
      if constexpr (Shape::kHasGate) {
        weigh_with_max<false>(at_, fragments_, scores, decay, step);
        take_output(at_, values);
        if (decay.applies) follow_reference(at_.output, decay.factor);
      } else {
        const bool is_weighed = softmax_without_max(at_, fragments_, scores, step);
        take_output(at_, values);
        if (__builtin_expect(!is_weighed, false))
          recompute_and_softmax(at_, fragments_, scores, step);
      }
      pack_weights(at_, fragments_, scores);
    }
  }

  /// Issues the product with V that is due; returns where V lies.
  __device__ __forceinline__ typename State::Values multiply_last_values() {
    const auto values = at_.values();
    at_.await(at_.smem.control()->v_full, values);
    multiply_values(at_, fragments_, uniform_over_warp(values_of(values)));
    return values;
  }

  using Ring = typename State::Ring;
  __device__ __forceinline__ u32 keys_of(const Ring& ring) const {
    return at_.smem.keys(ring.slot());
  }
  __device__ __forceinline__ u32 values_of(const typename State::Values& ring) const {
    return at_.smem.values(ring.slot());
  }

  State at_;
  StepFragments<Config> fragments_;
};

}  // namespace lacuna
