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
//   O += P V
//
// A warpgroup with a work tile of its own passes on steps without a tile of it: such a step ends
// this loop, and the next step that has one begins it again.
#pragma once

#include "attend/wgmma/consumers/consumer_steps.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class WgmmaConsumer : ConsumerSteps<Config, Hooks, Args> {
  using Steps = ConsumerSteps<Config, Hooks, Args>;
  using Steps::args_, Steps::smem_, Steps::warpgroup_, Steps::to_log2_;
  using Steps::await_group, Steps::await_products, Steps::complete, Steps::load_queries;
  using Steps::finish_store, Steps::receive, Steps::take_output, Steps::multiply_scores_again;
  using Steps::has_fresh_row_, Steps::keys_, Steps::output_, Steps::queries_, Steps::softmax_;
  using Steps::multiply_queries_keys, Steps::multiply_values, Steps::pack_weights;
  using typename Steps::Decay;
  using typename Steps::Message;
  using typename Steps::Scores;
  using typename Steps::Shape;

 public:
  using Steps::Steps;

  __device__ __forceinline__ void run() {
    if (Shape::kPingPong && warpgroup_ == Config::kWarpgroups - 1) turn_barrier(0).arrive();
    this->for_each_row([this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    this->await(smem_.control()->q_full, queries_);
    if constexpr (Shape::kKeepsQueries) load_queries();
    this->for_each_run(step, [this](Message& first) { attend_run(first); });
  }

  /// From `step` to the end of the row, or to a step that is passed on; `step` is then that one.
  __device__ __forceinline__ void attend_run(Message& step) {
    Scores scores;
    Decay decay;
    wgmma_begin();
    multiply_queries_keys(scores, uniform_over_warp(smem_.keys(keys_.slot())));
    weigh<true>(scores, decay, step);
    if (Shape::kOwnRows && decay.applies) follow_reference(output_, decay.factor);
    pack_weights(scores);
    finish_store();
    while (!step.has(Message::kLastOfRow)) {
      step = receive();
      if (Shape::kOwnRows && step.has(Message::kSkipped)) break;
      const auto values = keys_.before();
      const u32 k = uniform_over_warp(smem_.keys(keys_.slot()));
      const u32 v = uniform_over_warp(smem_.values(values.slot()));
      if constexpr (Shape::kPingPong) turn_barrier(warpgroup_).sync();
      wgmma_begin();
      multiply_queries_keys(scores, k);
      this->await(smem_.control()->v_full, values);
      multiply_values(v);
      if constexpr (Shape::kPingPong) turn_barrier((warpgroup_ + 1) % Config::kWarpgroups).arrive();
      if constexpr (Shape::kHasGate) {
        weigh<false>(scores, decay, step);
        take_output(values);
        if (decay.applies) follow_reference(output_, decay.factor);
      } else {
        const bool is_weighed = softmax_without_max(scores, step);
        take_output(values);
        if (__builtin_expect(!is_weighed, false)) recompute_and_softmax(scores, step);
      }
      pack_weights(scores);
    }
    const auto values = keys_.before();
    this->await(smem_.control()->v_full, values);
    multiply_values(uniform_over_warp(smem_.values(values.slot())));
    take_output(values);
  }

  /// Scores -> unpacked weights, group by group as they arrive, with maxima: for gates, and for the
  /// first step of a row, which sets the reference.
  template <bool kFirst>
  __device__ __forceinline__ void weigh(Scores& scores, Decay& decay, const Message& step) {
    decay = {};
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      await_group(scores, g, Shape::kGroups - g - (kFirst ? 1 : 0), step);
      this->template softmax_with_max<kFirst>(scores, g, decay, step);
    }
    if constexpr (kFirst) has_fresh_row_ = softmax_.any_fresh();
  }

  /// Weighs against the reference as it is. False: a row has none, or has outgrown it. That is
  /// rare, and handled behind the wait for the output, so that the instructions of the loop lie
  /// together.
  __device__ __forceinline__ bool softmax_without_max(Scores& scores, const Message& step) {
    float sum[2] = {0.0f, 0.0f};
    if constexpr (Config::kHasScore) {
      await_products(scores, 0, 1);
      // Written twice, so that in most steps the exponentials overlap the formulas.
      if (__builtin_expect(!has_fresh_row_ && !step.has(Message::kNeedsMaskOrReport), true)) {
        complete(scores, 0, step, true);
        exponentiate(sum, scores[0]);
      } else {
        complete(scores, 0, step, !has_fresh_row_);
        if (has_fresh_row_) return false;
        exponentiate(sum, scores[0]);
      }
    } else {
      await_group(scores, 0, 1, step);
      if (__builtin_expect(has_fresh_row_, false)) return false;
      exponentiate(sum, scores[0], softmax_.reference, to_log2_);
    }
    constexpr float kMost = Steps::Range::kLargestSum;
    const bool fits = sum[0] <= kMost && sum[1] <= kMost;
    if (__any_sync(kAllLanes, !fits)) return false;
    softmax_.sum[0] += sum[0];
    softmax_.sum[1] += sum[1];
    return true;
  }

  /// After softmax_without_max has failed: `scores` are scores or weights.
  __device__ __forceinline__ void recompute_and_softmax(Scores& scores, const Message& step) {
    if (!has_fresh_row_) {
      float decay[2];
      if (lower_weights(softmax_, scores[0], decay)) {
        follow_reference(output_, decay);
        return;
      }
      multiply_scores_again(scores, step);
    }
    Decay decay;
    this->template softmax_with_max<false>(scores, 0, decay, step);
    has_fresh_row_ = softmax_.any_fresh();
    if (decay.applies) follow_reference(output_, decay.factor);
  }
};

}  // namespace lacuna
