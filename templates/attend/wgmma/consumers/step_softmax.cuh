// What the 16-bit consumer of the wgmma family does with the scores of a step: formula and mask,
// the gate, and weights against a lagging maximum.
#pragma once

#include "attend/wgmma/consumers/gate_rows.cuh"
#include "attend/wgmma/consumers/step_mask.cuh"
#include "attend/wgmma/consumers/step_products.cuh"
#include "attend/wgmma/consumers/tile_decision.cuh"
#include "pipeline/key_rows.cuh"

namespace lacuna {

/// What everything older than a step is to be multiplied by.
struct Decay {
  bool applies = false;
  float factor[2] = {1.0f, 1.0f};
};

/// What a score formula makes of scores, so that the least is left to do: in log2, of a softmax
/// less the lagging maximum; or weights themselves.
template <class State>
__device__ __forceinline__ ScoreUnit weight_unit(const State& at) {
  constexpr WeightKind kKind = weight_kind<typename State::Config>();
  if constexpr (kKind == WeightKind::kSoftmax) {
    return {kLog2E, {at.softmax.lagging_max[0], at.softmax.lagging_max[1]}};
  } else {
    return {kKind == WeightKind::kSigmoid ? kLog2E : 1.0f, {0.0f, 0.0f}};
  }
}

/// Formula and mask on group g. `in_weight_unit`: the formula makes that of it. `ranges`: of
/// step_ranges, or not read yet.
template <class State, class Ranges = UnreadRanges>
__device__ __forceinline__ void complete_group(State& at,
                                               StepScores<typename State::Config>& scores, int g,
                                               const typename State::Message& step,
                                               bool in_weight_unit, const Ranges& ranges = {}) {
  using Config = typename State::Config;
  using Shape = typename State::Shape;
  const typename State::Row row = row_of_formulas(at);
  ScoreUnit unit;
  if (Config::kHasScore && in_weight_unit) unit = weight_unit(at);
  complete_scores<Config, typename State::Hooks>(args_of_work_tile<Config>(at.args, row), row,
                                                 at.lane_rows(row), scores[g], g, step,
                                                 at.tile_keys(), unit, ranges);
  if constexpr (gates_rows<Config>()) {
    gate_rows(at, scores[g], step);
  } else if constexpr (!Shape::kHasGate && !Config::kGathers && has_reports<Config>()) {
    if (step.has(State::Message::kNeedsMaskOrReport)) report_step(at, step);
  }
}

/// Of a step of one group without a mask: what its formula needs that depends on no product, in
/// weight_unit. It is worked out while the products are under way. Gathered keys have no columns
/// in common.
template <class State, bool kExist = State::Config::kHasScore && !State::Config::kGathers>
struct StepScoreParts {};
template <class State>
struct StepScoreParts<State, true> {
  static constexpr int kTileBlocks = State::Config::kTileK / 8;
  /// Of twice as many keys the rests of all scores take too many registers, and so they do beside
  /// what two elements of tables take until they are read.
  static constexpr bool kHasRests = State::Config::kStepKeys <= 64 &&
                                    State::Hooks::ScoreRow::kHasRest &&
                                    State::Hooks::ScoreRow::kElements < 2 &&
                                    !formula_is_costly<typename State::Hooks::ScoreRow>();
  ScoreParts<typename State::Hooks, LaneRowsOf<typename State::Config>, kTileBlocks>
      of_tile[State::Shape::kStepTiles];
  EarlyRests<kTileBlocks, kHasRests> rests_of_tile[State::Shape::kStepTiles];
};

template <class State>
__device__ __forceinline__ StepScoreParts<State> step_score_parts(
    const State& at, const typename State::Message& step) {
  using Config = typename State::Config;
  StepScoreParts<State> parts;
  if constexpr (Config::kHasScore && !Config::kGathers) {
    const typename State::Row row = row_of_formulas(at);
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t) {
      const TileRef tile = step.tiles[t];  // which may be missing; nobody uses its parts
      const int k = t == 0 || tile.exists() ? at.tile_keys().at(tile, first_slot_of_lane()) : 0;
      decltype(auto) args = args_of_work_tile<Config>(at.args, row);
      parts.of_tile[t] = score_parts<typename State::Hooks, Config::kTileK / 8>(
          args, at.lane_rows(row), k, row.b, weight_unit(at));
      if constexpr (StepScoreParts<State>::kHasRests)
        score_rests<typename State::Hooks>(parts.rests_of_tile[t].at, args, parts.of_tile[t],
                                           at.lane_rows(row), k, row.b);
    }
  }
  return parts;
}

/// The formula on all scores of such a step.
template <class State>
__device__ __forceinline__ void apply_formula(const State& at,
                                              StepScores<typename State::Config>& scores,
                                              const StepScoreParts<State>& parts,
                                              const typename State::Message& step) {
  using Config = typename State::Config;
  if constexpr (Config::kGathers) {
    complete_group(at, scores, 0, step, true);
  } else if constexpr (Config::kHasScore) {
    constexpr int kTileBlocks = Config::kTileK / 8;
    const typename State::Row row = row_of_formulas(at);
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t)
      apply_score_formula<typename State::Hooks, kTileBlocks>(
          args_of_work_tile<Config>(at.args, row), scores[0] + t * kTileBlocks, parts.of_tile[t],
          parts.rests_of_tile[t], at.lane_rows(row),
          at.tile_keys().at(step.tiles[t], first_slot_of_lane()), row.b, weight_unit(at));
  }
}

/// Group g is there once `pending` later products are still under way; with the last, the keys are
/// no longer needed.
template <class State>
__device__ __forceinline__ void await_products(State& at,
                                               StepScores<typename State::Config>& scores, int g,
                                               int pending) {
  wgmma_wait(pending);
  fence_accumulator(scores[g]);
  if (g == State::Shape::kGroups - 1) at.release_keys();
}
template <class State, class Ranges = UnreadRanges>
__device__ __forceinline__ void complete_awaited_group(State& at,
                                                       StepScores<typename State::Config>& scores,
                                                       int g, const typename State::Message& step,
                                                       const Ranges& ranges = {}) {
  if (State::Config::kHasScore ||
      __builtin_expect(step.has(State::Message::kNeedsMaskOrReport), false))
    complete_group(at, scores, g, step, false, ranges);
}
template <class State>
__device__ __forceinline__ void await_group(State& at, StepScores<typename State::Config>& scores,
                                            int g, int pending,
                                            const typename State::Message& step) {
  const auto ranges = step_ranges(at, step);
  await_products(at, scores, g, pending);
  complete_awaited_group(at, scores, g, step, ranges);
}

/// Computes the scores of a step again. Needed where its logits are so far above those before that
/// f32 cannot hold their weights: the weights have overwritten the scores.
template <class State, class Fragments>
__device__ __forceinline__ void multiply_scores_again(const State& at, Fragments& fragments,
                                                      StepScores<typename State::Config>& scores,
                                                      const typename State::Message& step) {
  using Config = typename State::Config;
  const typename State::Row row = at.reload_row();
  decltype(auto) args = args_of_work_tile<Config>(at.args, row);
  multiply_again<Config, typename State::Hooks>(
      args, row, at.lane_rows(row), key_rows<Config>(args, row), scores[0], step,
      at.smem.queries(at.queries.slot(), at.warpgroup), warp_of_warpgroup(), at.tile_keys());
  if constexpr (gates_rows<Config>()) hide_gated_rows(at, scores[0]);
  // Read again, so that they need no registers during the product.
  if constexpr (State::Shape::kKeepsQueries) load_queries(at, fragments, at.queries);
}

/// Scores of part g -> weights, against a lagging maximum that is raised first where they exceed
/// it. `maxima`: of each lane's part. `exceeds`: false where no score is above all those before, so
/// that the lagging maximum holds. `sum`: what the weights are added to.
template <class State>
__device__ __forceinline__ void weigh_against(State& at, StepScores<typename State::Config>& scores,
                                              int g, Decay& decay, const float (&maxima)[2],
                                              bool exceeds, float (&sum)[2]) {
  using Config = typename State::Config;
  float row_max[2];
  if (State::Shape::kHasGate && Config::kGateReadsGap && exceeds) {
#pragma unroll
    for (int r = 0; r < 2; ++r) row_max[r] = quad_max(maxima[r]);
    at.gate.raise(row_max);
  }
  if (exceeds &&
      outgrows(at.softmax, maxima, at.to_log2, WeightRange<typename State::Element>::kSlackLog2)) {
#pragma unroll
    for (int r = 0; r < 2; ++r) row_max[r] = quad_max(maxima[r]);
    float raised[2];
    raise_lagging_max(at.softmax, raised, row_max, at.to_log2);
#pragma unroll
    for (int older = 0; older < g; ++older)
      follow_lagging_max(weighed_part<Config>(scores, older), raised);
    decay.factor[0] *= raised[0];
    decay.factor[1] *= raised[1];
    decay.applies = true;
  }
  const float offset[2] = {at.softmax.offset(0), at.softmax.offset(1)};
  exponentiate(sum, weighed_part<Config>(scores, g), offset, at.to_log2);
}

/// Part g under the gate and a lagging maximum that its maxima are held against.
template <bool kFirst, class State>
__device__ __forceinline__ void softmax_with_max(State& at,
                                                 StepScores<typename State::Config>& scores, int g,
                                                 Decay& decay,
                                                 const typename State::Message& step) {
  float maxima[2];
  lane_maxima(maxima, weighed_part<typename State::Config>(scores, g));
  if constexpr (State::Shape::kWarpsKnow) {
    // A tile that is left out is weighed as well: of a branch around it the compiler makes copies
    // of the scores, and serialises the products.
    const bool counts = gate_counts<kFirst>(at, g, step.tiles[g], maxima);
    float sum[2] = {0.0f, 0.0f};
    weigh_against(at, scores, g, decay, maxima, counts && at.gate.exceeds(maxima), sum);
#pragma unroll
    for (int r = 0; r < 2; ++r) at.softmax.sum[r] += counts ? sum[r] : 0.0f;
  } else {
    bool exceeds = true;
    if constexpr (State::Shape::kHasGate) {
      if (!gate_counts<kFirst>(at, g, step.tiles[g], maxima)) return;
      exceeds = at.gate.exceeds(maxima);
    }
    weigh_against(at, scores, g, decay, maxima, exceeds, at.softmax.sum);
  }
}

/// Scores -> unpacked weights, group by group as they arrive, or tile by tile where the gate asks
/// for it, with maxima: for gates, and for the first step of a row, which sets the lagging maximum.
template <bool kFirst, class State, class Fragments>
__device__ __forceinline__ void weigh_with_max(State& at, Fragments& fragments,
                                               StepScores<typename State::Config>& scores,
                                               Decay& decay, const typename State::Message& step) {
  using Shape = typename State::Shape;
  decay = {};
#pragma unroll
  for (int g = 0; g < Shape::kParts; ++g) {
    if constexpr (Shape::kWarpsKnow && !kFirst) {
      if (g == 0) complete_awaited_group(at, scores, 0, step);
    } else {
      if (g < Shape::kGroups)
        await_group(at, scores, g, Shape::kGroups - g - (kFirst ? 1 : 0), step);
    }
    softmax_with_max<kFirst>(at, scores, g, decay, step);
  }
  if constexpr (kFirst) fragments.has_fresh_row = at.softmax.any_fresh();
}

/// Scores -> weights: a score formula has made weight_unit of them.
template <class State, int kBlocks>
__device__ __forceinline__ void exponentiate_relative(float (&sum)[2], const State& at,
                                                      float (&scores)[kBlocks][4]) {
  if constexpr (State::Config::kHasScore) {
    exponentiate(sum, scores);
  } else {
    exponentiate(sum, scores, at.softmax.lagging_max, at.to_log2);
  }
}

/// Scores -> weights against the lagging maximum as it is, without looking for maxima. False: a row
/// has no lagging maximum yet, or exceeds it. That is rare. It is handled behind the wait for the
/// output, out of the way, so that the instructions of the usual path lie close together.
template <class State, class Fragments>
__device__ __forceinline__ bool softmax_without_max(State& at, const Fragments& fragments,
                                                    StepScores<typename State::Config>& scores,
                                                    const typename State::Message& step) {
  float sum[2] = {0.0f, 0.0f};
  if constexpr (State::Config::kHasScore || kAsksConditionsAhead<State>) {
    const StepScoreParts<State> parts = step_score_parts(at, step);
    const StepMask<State> mask = step_mask(at, step);
    const auto ranges = step_ranges(at, step);
    await_products(at, scores, 0, 1);
    // Written twice, so that in most steps the exponentials overlap the formulas.
    if (__builtin_expect(!fragments.has_fresh_row && mask.is_usual(step), true)) {
      apply_formula(at, scores, parts, step);
      apply_step_mask<State>(scores, mask);
      exponentiate_relative(sum, at, scores[0]);
    } else {
      complete_group(at, scores, 0, step, !fragments.has_fresh_row, ranges);
      if (fragments.has_fresh_row) return false;
      exponentiate_relative(sum, at, scores[0]);
    }
  } else {
    await_group(at, scores, 0, 1, step);
    if (__builtin_expect(fragments.has_fresh_row, false)) return false;
    exponentiate_relative(sum, at, scores[0]);
  }
  constexpr float kMost = WeightRange<typename State::Element>::kLargestSum;
  const bool fits = sum[0] <= kMost && sum[1] <= kMost;
  if (__any_sync(kAllLanes, !fits)) return false;
  at.softmax.sum[0] += sum[0];
  at.softmax.sum[1] += sum[1];
  return true;
}

/// After softmax_without_max has failed: `scores` are scores or weights.
template <class State, class Fragments>
__device__ __forceinline__ void recompute_and_softmax(State& at, Fragments& fragments,
                                                      StepScores<typename State::Config>& scores,
                                                      const typename State::Message& step) {
  if (!fragments.has_fresh_row) {
    float decay[2];
    if (lower_weights(at.softmax, scores[0], decay)) {
      follow_lagging_max(at.output, decay);
      return;
    }
    multiply_scores_again(at, fragments, scores, step);
  }
  Decay decay;
  softmax_with_max<false>(at, scores, 0, decay, step);
  fragments.has_fresh_row = at.softmax.any_fresh();
  if (decay.applies) follow_lagging_max(at.output, decay.factor);
}

template <class State, class Fragments>
__device__ __forceinline__ void pack_weights(const State&, Fragments& fragments,
                                             const StepScores<typename State::Config>& scores) {
  using Shape = typename State::Shape;
  constexpr int kGroupSteps = Shape::kGroupKeys / 16;
#pragma unroll
  for (int n = 0; n < State::Config::kStepKeys / 16; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      fragments.weights[n][i] =
          weight_pair<typename State::Element>(scores[n / kGroupSteps] + n % kGroupSteps * 2, i);
      // Here, and not behind the branch of a gate, where the product is already being issued.
      if constexpr (Shape::kHasGate) pin(fragments.weights[n][i]);
    }
  }
}

}  // namespace lacuna
