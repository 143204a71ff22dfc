// A gate that reads one statistic and stays open as that grows, decided behind the exponentials
// (GateByTileVotes). In most steps every tile counts, so the exponentials of a step do not wait for
// the decision:
//
//   S' is complete: its maxima, which say which tiles count as far as the warp knows: published
//                   its exponentials, as if all tiles counted, their sums kept apart
//   (the earlier product with V is complete, the weights become P, the next S is issued)
//   settle          a warp that is not sure of all tiles reads the votes of the others; the sums of
//                   tiles that count join those of their rows
//   O += P V        of tiles that count
//
// So a warp waits for another only where its own rows leave a tile undecided, and then for a vote
// that was published a product and a half ago.
//
// A gate that reads the gap needs the running maximum of the tiles before, of those that count. It
// is known without a decision as long as the gate is open at a gap of 0: a row that exceeds its
// running maximum says by itself that the tile counts. A step decides first (weigh_with_max) where
// its gate is closed at a gap of 0, which all warps find alike, or where it has a mask or a report.
#pragma once

#include "attend/wgmma/consumers/step_softmax.cuh"

namespace lacuna {

/// May the step's tiles be decided about behind their exponentials? The same for all warps in
/// scope.
template <class State>
__device__ __forceinline__ bool decides_late(const State& at, const typename State::Message& step) {
  using Config = typename State::Config;
  if (step.has(State::Message::kNeedsMaskOrReport)) return false;
  if constexpr (Config::kGateReadsGap) {
    const typename State::Row row = at.reload_row();
    GateStatistics level;
    level.gap = 0.0f;
    bool opens = true;
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t)
      opens = opens && !gate_skips<Config, typename State::Hooks>(at.args, row, at.gate_row,
                                                                  step.tiles[t].index(), level);
    return __all_sync(kAllLanes, opens);
  }
  return true;
}

/// Publishes which tiles of the step count as far as the warp knows. `scores`: with hook and mask.
template <class State>
__device__ __forceinline__ void vote_on_step(State& at, LateVotes<typename State::Config>& late,
                                             StepScores<typename State::Config>& scores,
                                             const typename State::Message& step) {
  using Config = typename State::Config;
  const typename State::Row row = at.reload_row();
  late.counts = 0;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    float maxima[2];
    lane_maxima(maxima, weighed_part<Config>(scores, t));
    GateStatistics lane = at.gate.of_lane(maxima);
    lane.tile_max *= at.unit();
    lane.gap *= at.unit();
    const bool opens = !gate_skips<Config, typename State::Hooks>(at.args, row, at.gate_row,
                                                                  step.tiles[t].index(), lane);
    late.counts |= static_cast<u32>(__any_sync(kAllLanes, opens)) << t;
    if constexpr (Config::kGateReadsGap) {
#pragma unroll
      for (int r = 0; r < 2; ++r) maxima[r] = quad_max(maxima[r]);
      at.gate.raise(maxima);
    }
  }
  late.is_due = true;
  at.votes.publish(late.counts);
}

/// Weights of the step against the lagging maximum as it is; false: one has outgrown it.
template <class State>
__device__ __forceinline__ bool weigh_all_tiles(const State& at,
                                                LateVotes<typename State::Config>& late,
                                                StepScores<typename State::Config>& scores) {
  using Config = typename State::Config;
  constexpr float kMost = WeightRange<typename State::Element>::kLargestSum;
  bool fits = true;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    late.sum[t][0] = late.sum[t][1] = 0.0f;
    exponentiate(late.sum[t], weighed_part<Config>(scores, t), at.softmax.lagging_max, at.to_log2);
    fits = fits && late.sum[t][0] <= kMost && late.sum[t][1] <= kMost;
  }
  return __all_sync(kAllLanes, fits);
}

/// Votes on the step and weighs it, as if all its tiles counted. False: weigh_late_again has to
/// follow once O is complete. So it is where a row has no lagging maximum yet: without a branch for
/// that, votes and exponentials overlap.
template <class State, class Fragments>
__device__ __forceinline__ bool weigh_late(State& at, Fragments& fragments,
                                           StepScores<typename State::Config>& scores,
                                           const typename State::Message& step) {
  if constexpr (State::Config::kHasScore) complete_group(at, scores, 0, step, false);
  vote_on_step(at, fragments.late, scores, step);
  return weigh_all_tiles(at, fragments.late, scores);
}

/// After weigh_late has failed.
template <class State, class Fragments>
__device__ __forceinline__ void weigh_late_again(State& at, Fragments& fragments,
                                                 StepScores<typename State::Config>& scores,
                                                 const typename State::Message& step) {
  using Config = typename State::Config;
  float decay[2];
  LazyMax lowered = at.softmax;
  if (!fragments.has_fresh_row && lower_weights(lowered, scores[0], decay)) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      at.softmax.lagging_max[r] = lowered.lagging_max[r];
      at.softmax.sum[r] *= decay[r];  // without the weights: their tiles are still undecided
    }
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t) {
      fragments.late.sum[t][0] = fragments.late.sum[t][1] = 0.0f;
      add_weights(fragments.late.sum[t], weighed_part<Config>(scores, t));
    }
  } else {
    multiply_scores_again(at, fragments, scores, step);
    float maxima[2];
    row_maxima_wide(maxima, scores[0]);
    raise_lagging_max(at.softmax, decay, maxima, at.to_log2);
    const float offset[2] = {at.softmax.offset(0), at.softmax.offset(1)};
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t) {
      fragments.late.sum[t][0] = fragments.late.sum[t][1] = 0.0f;
      exponentiate(fragments.late.sum[t], weighed_part<Config>(scores, t), offset, at.to_log2);
    }
    fragments.has_fresh_row = at.softmax.any_fresh();
  }
  follow_lagging_max(at.output, decay);
}

/// Before the product with V that is due: decides about its tiles, if that is still to be done.
template <class State, class Fragments>
__device__ __forceinline__ void settle(State& at, Fragments& fragments) {
  using Config = typename State::Config;
  constexpr int kTiles = State::Shape::kStepTiles;
  auto& late = fragments.late;
  if (!late.is_due) return;
  late.is_due = false;
  u32 counts = late.counts;
  if (counts != (1u << kTiles) - 1) counts = at.votes.collect();
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const bool is_counted = (counts >> t & 1) != 0;
    at.has_weights[t] = is_counted || !Config::kSkipsPv;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      at.softmax.sum[r] += is_counted || !Config::kSkipsExp ? late.sum[t][r] : 0.0f;
  }
}

/// The step whose S is under way -> unpacked weights, and O is complete.
template <class State, class Fragments>
__device__ __forceinline__ void weigh_under_gate(State& at, Fragments& fragments,
                                                 StepScores<typename State::Config>& scores,
                                                 Decay& decay, const typename State::Message& step,
                                                 const typename State::Values& values) {
  const bool is_late = decides_late(at, step);
  await_products(at, scores, 0, 1);  // in front of the branch: keys are released without delay
  bool is_weighed = false;
  if (__builtin_expect(is_late, true)) {
    is_weighed = weigh_late(at, fragments, scores, step);
  } else {
    weigh_with_max<false>(at, fragments, scores, decay, step);
  }
  // Where both ways have met: the assembler moves the wait up in front of exponentials that are not
  // behind a branch.
  take_output(at, values);
  if (__builtin_expect(is_weighed, true)) return;
  if (is_late) {
    weigh_late_again(at, fragments, scores, step);
  } else if (decay.applies) {
    follow_lagging_max(at.output, decay.factor);
  }
}

}  // namespace lacuna
