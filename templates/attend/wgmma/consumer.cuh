// A consumer warpgroup of the wgmma family: 64 query rows of each work tile.
//
// Products are issued ahead of what waits for them: the scores of the next step, group of keys by
// group, and behind them this step's weights with V. The softmax of a group thus runs under the
// products of the following ones, under that with V, and under all those of the other warpgroups:
//
//   S_g = Q K_g, softmax of each group g
//   for each further step:       (wait for the turn, if warpgroups take turns)
//                                S'_g = Q K_g for all g, O += P V     issued
//                                (pass the turn on)
//                                S'_g is complete: its softmax, for each g
//                                O is complete: O decays, P = S'
//   O += P V
//
// Where the warpgroup has a work tile of its own, a step that it passes on ends such a run, and
// its next step begins another.
#pragma once

#include "arch/wgmma.cuh"
#include "attend/wgmma/consumer_base.cuh"
#include "attend/wgmma/wgmma_scores.cuh"
#include "pipeline/key_rows.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class WgmmaConsumer : protected ConsumerBase<Config, Hooks, Args> {
 protected:
  using Rows = ConsumerBase<Config, Hooks, Args>;
  using Rows::args_, Rows::smem_, Rows::warpgroup_, Rows::to_log2_, Rows::row_;
  using Rows::await, Rows::receive, Rows::release_keys, Rows::release_values;
  using Rows::finish_store, Rows::first_row, Rows::reload_row, Rows::report_step, Rows::tile_keys,
      Rows::warp;
  using Rows::queries_, Rows::keys_, Rows::has_weights_, Rows::softmax_, Rows::output_;
  using typename Rows::Element;
  using typename Rows::Message;
  using typename Rows::Ring;
  using typename Rows::Row;
  using typename Rows::Shape;
  using typename Rows::Smem;
  using Scores = float[Shape::kGroups][Shape::kGroupBlocks][4];
  using Weights = u32[Config::kStepKeys / 16][4];
  using Range = WeightRange<Element>;

  /// What everything older than a step is to be multiplied by.
  struct Decay {
    bool applies = false;
    float factor[2] = {1.0f, 1.0f};
  };

 public:
  /// `warpgroup`: 0 .. kWarpgroups - 1.
  __device__ __forceinline__ WgmmaConsumer(const Args& args, const Smem& smem, int warpgroup)
      : Rows(args, smem, warpgroup) {}

  __device__ __forceinline__ void run() {
    if (Shape::kPingPong && warpgroup_ == Config::kWarpgroups - 1) turn_barrier(0).arrive();
    this->for_each_row([this](const Message& first) { attend_row(first); });
  }

 protected:
  __device__ __forceinline__ void attend_row(Message step) {
    await(smem_.control()->q_full, queries_);
    if constexpr (Shape::kKeepsQueries) load_queries();
    this->for_each_run(step, [this](Message& first) { attend_run(first); });
  }

  /// From `step` on to the end of the row, or to a step that is passed on, which `step` then is.
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
      await(smem_.control()->v_full, values);
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
    await(smem_.control()->v_full, values);
    multiply_values(uniform_over_warp(smem_.values(values.slot())));
    take_output(values);
  }

  __device__ __forceinline__ void take_output(const Ring& values) {
    wgmma_wait<0>();
    fence_accumulator(output_);
    release_values(values);
  }

  __device__ __forceinline__ void load_queries() {
    const u32 q = smem_.queries(queries_.slot(), warpgroup_);
#pragma unroll
    for (int n = 0; n < Config::kHeadDim / 16; ++n)
      read_query_fragment<typename Shape::QueryTile>(query_[n], q, warp(), n);
  }

  /// Issues S = Q K of the step whose keys are at `keys`, a commit for each group (and one on the
  /// way where warpgroups look ahead).
  __device__ __forceinline__ void multiply_queries_keys(Scores& scores, u32 keys) const {
    using Step = typename Shape::StepTile;
    using Query = typename Shape::QueryTile;
    const auto q = Query::along_rows(uniform_over_warp(smem_.queries(queries_.slot(), warpgroup_)));
    const auto k = Step::along_rows(keys);
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      const int first = g * Shape::kGroupKeys * kPanelRowBytes;
      constexpr int kSteps = Config::kHeadDim / 16;
      if constexpr (Shape::kKeepsQueries) {
#pragma unroll
        for (int n = 0; n + 4 <= kSteps; n += 4) {
          const unsigned long long keys_of[4] = {
              k.at(Step::along_step(n) + first), k.at(Step::along_step(n + 1) + first),
              k.at(Step::along_step(n + 2) + first), k.at(Step::along_step(n + 3) + first)};
          wgmma_four_from_registers<Element, Contiguous::kDepth>(scores[g], query_ + n, keys_of,
                                                                 n != 0);
        }
#pragma unroll
        for (int n = kSteps / 4 * 4; n < kSteps; ++n)
          wgmma_from_registers<Element, Contiguous::kDepth>(
              scores[g], query_[n], k.at(Step::along_step(n) + first), n != 0);
      } else {
#pragma unroll
        for (int n = 0; n < kSteps; ++n) {
          wgmma_from_smem<Element>(scores[g], q.at(Query::along_step(n)),
                                   k.at(Step::along_step(n) + first), n != 0);
          // Far enough for the other warpgroup to follow without a pause: its turn.
          if (Shape::kLooksAhead && n == kSteps * 3 / 8 - 1) wgmma_commit();
        }
      }
      wgmma_commit();
    }
  }

  /// Issues O += P V for the values at `values`, of the groups whose weights count, and commits.
  __device__ __forceinline__ void multiply_values(u32 values) {
    if constexpr (Shape::kHasGate) {
      multiply_groups<0, 0>(values);
    } else {
      multiply_groups<(1u << Shape::kGroups) - 1, Shape::kGroups>(values);
    }
  }

  /// Groups from kGroup on are still to be asked. Each choice is a branch with a commit of its own:
  /// waits count commits, and a product that goes on behind a branch would take one more.
  template <u32 kChosen, int kGroup>
  __device__ __forceinline__ void multiply_groups(u32 values) {
    if constexpr (kGroup < Shape::kGroups) {
      if (uniform_over_warp(has_weights_[kGroup]) != 0) {
        multiply_groups<kChosen | 1u << kGroup, kGroup + 1>(values);
      } else {
        multiply_groups<kChosen, kGroup + 1>(values);
      }
    } else {
      using Step = typename Shape::StepTile;
      const auto v = Step::across_rows(values);
      constexpr int kGroupSteps = Shape::kGroupKeys / 16;
      wgmma_begin();
#pragma unroll
      for (int n = 0; n < Config::kStepKeys / 16; n += 4) {
        if ((kChosen >> n / kGroupSteps & 1) == 0) continue;
        const unsigned long long values_of[4] = {
            v.at(Step::across_step(n)), v.at(Step::across_step(n + 1)),
            v.at(Step::across_step(n + 2)), v.at(Step::across_step(n + 3))};
        wgmma_four_from_registers<Element, Contiguous::kColumns>(output_, weights_ + n, values_of,
                                                                 true);
      }
      wgmma_commit();
    }
  }

  /// Scores -> unpacked weights, group by group as they arrive. Gates decide from maxima; so does
  /// the first step of a row, which sets the reference.
  template <bool kFirst>
  __device__ __forceinline__ void weigh(Scores& scores, Decay& decay, const Message& step) {
    decay = {};
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      await_group(scores, g, Shape::kGroups - g - (kFirst ? 1 : 0), step);
      softmax_with_max<kFirst>(scores, g, decay, step);
    }
    if constexpr (kFirst) has_fresh_row_ = softmax_.any_fresh();
  }

  /// Group g is there once `pending` later products are still under way; with the last, the keys
  /// are no longer needed.
  __device__ __forceinline__ void await_group(Scores& scores, int g, int pending,
                                              const Message& step) {
    await_products(scores, g, pending);
    if (Config::kHasScore || __builtin_expect(step.has(Message::kNeedsMaskOrReport), false))
      complete(scores, g, step, false);
  }
  __device__ __forceinline__ void await_products(Scores& scores, int g, int pending) {
    wgmma_wait(pending);
    fence_accumulator(scores[g]);
    if (g == Shape::kGroups - 1) release_keys();
  }

  /// Without maxima. False: that went too far, or there is a row without a reference. What is done
  /// then has its place behind the wait for the output, with all that is seldom: instructions that
  /// lie close together are there when their turn comes.
  __device__ __forceinline__ bool softmax_without_max(Scores& scores, const Message& step) {
    float sum[2] = {0.0f, 0.0f};
    if constexpr (Config::kHasScore) {
      await_products(scores, 0, 1);
      // Twice, so that the exponentials of most steps run among the formulas, not behind a branch.
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
    const bool fits = sum[0] <= Range::kLargestSum && sum[1] <= Range::kLargestSum;
    if (__any_sync(kAllLanes, !fits)) return false;
    softmax_.sum[0] += sum[0];
    softmax_.sum[1] += sum[1];
    return true;
  }

  /// A step in which a row had no reference, or has outgrown it: scores or weights, see
  /// softmax_without_max.
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
    softmax_with_max<false>(scores, 0, decay, step);
    has_fresh_row_ = softmax_.any_fresh();
    if (decay.applies) follow_reference(output_, decay.factor);
  }

  /// Of a step whose logits lie so far above those before that f32 does not hold their weights.
  __device__ __forceinline__ void multiply_scores_again(Scores& scores, const Message& step) {
    const Row row = reload_row();
    decltype(auto) args = args_of<Config>(args_, row);
    multiply_again<Config, Hooks>(args, row, this->lane_rows(row), key_rows<Config>(args, row),
                                  scores[0], step, smem_.queries(queries_.slot(), warpgroup_),
                                  warp(), tile_keys());
    // Read anew, so that they need not live through that.
    if constexpr (Shape::kKeepsQueries) load_queries();
  }

  /// Formula and mask on group g. `is_relative`: what the formula makes of it is less the
  /// reference, in log2.
  __device__ __forceinline__ void complete(Scores& scores, int g, const Message& step,
                                           bool is_relative) const {
    // A loop in a loop has no registers left for the row.
    const Row row = Shape::kOwnRows || packs_heads<Config>() ? reload_row() : row_;
    ScoreUnit unit;
    if (Config::kHasScore && is_relative)
      unit = {kLog2E, {softmax_.reference[0], softmax_.reference[1]}};
    complete_scores<Config, Hooks>(args_of<Config>(args_, row), row, this->lane_rows(row),
                                   scores[g], g, step, tile_keys(), unit);
    if constexpr (!Shape::kHasGate && !Config::kGathers && !packs_heads<Config>()) {
      if (step.has(Message::kNeedsMaskOrReport)) report_step(step);
    }
  }

  /// Group g under the gate and a reference that its maxima are held against.
  template <bool kFirst>
  __device__ __forceinline__ void softmax_with_max(Scores& scores, int g, Decay& decay,
                                                   const Message& step) {
    float maxima[2];
    lane_maxima(maxima, scores[g]);
    bool exceeds = true;
    if constexpr (Shape::kHasGate) {
      if (!this->template counts<kFirst>(g, step.tiles[g], maxima)) return;
      exceeds = this->gate_.exceeds(maxima);
    }
    weigh_against(scores, g, decay, maxima, exceeds);
  }

  /// Group g, whose maxima of each lane's part are known. `exceeds`: there may be one above all
  /// those before; else no reference is outgrown.
  __device__ __forceinline__ void weigh_against(Scores& scores, int g, Decay& decay,
                                                const float (&maxima)[2], bool exceeds) {
    float row_max[2];
    if (Shape::kHasGate && Config::kGateReadsGap && exceeds) {
#pragma unroll
      for (int r = 0; r < 2; ++r) row_max[r] = quad_max(maxima[r]);
      this->gate_.raise(row_max);
    }
    if (exceeds && outgrows(softmax_, maxima, to_log2_, Range::kSlackLog2)) {
#pragma unroll
      for (int r = 0; r < 2; ++r) row_max[r] = quad_max(maxima[r]);
      float raised[2];
      raise_reference(softmax_, raised, row_max, to_log2_);
#pragma unroll
      for (int older = 0; older < g; ++older) follow_reference(scores[older], raised);
      decay.factor[0] *= raised[0];
      decay.factor[1] *= raised[1];
      decay.applies = true;
    }
    const float offset[2] = {softmax_.offset(0), softmax_.offset(1)};
    exponentiate(softmax_.sum, scores[g], offset, to_log2_);
  }

  __device__ __forceinline__ void pack_weights(const Scores& scores) {
    constexpr int kGroupSteps = Shape::kGroupKeys / 16;
#pragma unroll
    for (int n = 0; n < Config::kStepKeys / 16; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&block)[4] = scores[n / kGroupSteps][n % kGroupSteps * 2 + i / 2];
        weights_[n][i] = pack<Element>(block[i % 2 * 2], block[i % 2 * 2 + 1]);
        // Here, and not behind the branch of a gate, where the product is already being issued.
        if constexpr (Shape::kHasGate) pin(weights_[n][i]);
      }
    }
  }

  bool has_fresh_row_;                   ///< of this warp: it has no reference yet
  u32 query_[Config::kHeadDim / 16][4];  ///< fragments, if kept
  Weights weights_;
};

}  // namespace lacuna
