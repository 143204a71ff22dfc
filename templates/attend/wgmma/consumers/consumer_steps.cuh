// What the 16-bit consumers of the wgmma family do with a step: its products, issued ahead of what
// waits for them, formula and mask on its scores, and their softmax.
#pragma once

#include "arch/multiply/wgmma.cuh"
#include "attend/wgmma/consumers/consumer_base.cuh"
#include "attend/wgmma/scores/wgmma_scores.cuh"
#include "pipeline/key_rows.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ConsumerSteps : protected ConsumerBase<Config, Hooks, Args> {
 protected:
  using Rows = ConsumerBase<Config, Hooks, Args>;
  using Rows::args_, Rows::smem_, Rows::warpgroup_, Rows::to_log2_, Rows::row_;
  using Rows::has_weights_, Rows::keys_, Rows::output_, Rows::queries_, Rows::softmax_;
  using Rows::release_keys, Rows::release_values, Rows::reload_row, Rows::report_step,
      Rows::tile_keys, Rows::warp;
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
  __device__ __forceinline__ ConsumerSteps(const Args& args, const Smem& smem, int warpgroup)
      : Rows(args, smem, warpgroup) {}

 protected:
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

  /// O is complete, and the values at `values` are no longer needed.
  __device__ __forceinline__ void take_output(const Ring& values) {
    wgmma_wait<0>();
    fence_accumulator(output_);
    release_values(values);
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

  /// Of a step whose logits lie so far above those before that f32 does not hold their weights.
  __device__ __forceinline__ void multiply_scores_again(Scores& scores, const Message& step) {
    const Row row = reload_row();
    decltype(auto) args = args_of_work_tile<Config>(args_, row);
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
    complete_scores<Config, Hooks>(args_of_work_tile<Config>(args_, row), row, this->lane_rows(row),
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

  // Before the arrays: which registers the compiler takes depends on the order of members.
  bool has_fresh_row_;                   ///< of this warp: it has no reference yet
  u32 query_[Config::kHeadDim / 16][4];  ///< fragments, if kept
  Weights weights_;
};

}  // namespace lacuna
