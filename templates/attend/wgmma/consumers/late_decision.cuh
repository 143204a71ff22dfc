// A gate that reads one statistic and stays open as that grows, decided behind the exponentials
// (GateByTileVotes). In most steps every tile counts, so the exponentials of a step do not wait for
// the decision:
//
//   S' is complete: its exponentials, as if all tiles counted, their sums kept apart; which tiles
//                   count as far as the warp knows: published
//   (the earlier product with V is complete, the weights become P, the next S is issued)
//   settle          a warp that is not sure of all tiles reads the votes of the others; the sums of
//                   tiles that count join those of their rows
//   O += P V        of tiles that count
//
// So a warp waits for another only where its own rows leave a tile undecided, and by then the other
// has mostly voted: its vote is due a product earlier.
//
// In most steps no maximum is looked for. The largest of eight weights is at most their sum, and at
// least an eighth of it. Mostly these bounds show that the tile counts and that no row exceeds its
// running maximum (all_count). Otherwise the warp looks for its largest weights, and where these
// lie too close to where the gate closes, it computes the scores again (weigh_late_again).
//
// A gate that reads the gap needs the running maximum of the tiles before, of those that count. It
// is known without a decision as long as the gate is open at a gap of 0: a row that exceeds its
// running maximum says by itself that the tile counts. A step decides first (weigh_with_max) where
// its gate is closed at a gap of 0, which all warps find alike, or where it has a mask or a report.
#pragma once

#include "attend/wgmma/consumers/step_softmax.cuh"

namespace lacuna {

/// The logarithm of a weight is off by less than kRoundingLog2. Below kLeastWeightLog2 a weight has
/// fewer digits, or is 0.
inline constexpr float kRoundingLog2 = 0x1p-10f, kLeastWeightLog2 = -125.0f;

/// May the step's tiles be decided about behind their exponentials? The same for all warps in
/// scope.
template <class State>
__device__ __forceinline__ bool decides_late(const State& at, const typename State::Message& step) {
  using Config = typename State::Config;
  if (step.has(State::Message::kNeedsMaskOrReport)) return false;
  if constexpr (Config::kGateReadsGap) {
    const WorkTile row = at.reload_row();
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

/// Publishes the warp's votes on the step, and notes that its tiles are to be decided about.
/// `counts`: a bit for each tile that counts as far as the warp knows.
template <class State>
__device__ __forceinline__ void publish_votes(State& at, LateVotes<typename State::Config>& late,
                                              u32 counts) {
  late.counts = counts;
  late.is_due = true;
  at.votes.publish(counts);
}

/// Does the warp's gate leave tile t of the step open, by what its lanes say of it?
template <class State>
__device__ __forceinline__ bool gate_opens(const State& at, const WorkTile& row,
                                           const typename State::Message& step, int t,
                                           const GateStatistics& lane) {
  return __any_sync(kAllLanes, !gate_skips<typename State::Config, typename State::Hooks>(
                                   at.args, row, at.gate_row, step.tiles[t].index(), lane));
}

/// Votes on the step by its scores, with hook and mask.
template <class State>
__device__ __forceinline__ void vote_on_scores(State& at, LateVotes<typename State::Config>& late,
                                               StepScores<typename State::Config>& scores,
                                               const typename State::Message& step) {
  using Config = typename State::Config;
  const WorkTile row = at.reload_row();
  u32 counts = 0;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    float maxima[2];
    lane_maxima(maxima, weighed_part<Config>(scores, t));
    GateStatistics lane = at.gate.of_lane(maxima);
    lane.tile_max *= at.unit();
    lane.gap *= at.unit();
    counts |= static_cast<u32>(gate_opens(at, row, step, t, lane)) << t;
#pragma unroll
    for (int r = 0; r < 2; ++r) maxima[r] = quad_max(maxima[r]);
    at.gate.raise(maxima);
  }
  publish_votes(at, late, counts);
}

/// Votes on the step by the largest weights of each lane, of tiles and rows, in log2. False: they
/// do not say which tiles count, because one has no digits left or lies too close to where the gate
/// closes.
template <class State>
__device__ __forceinline__ bool vote_on_weights(State& at, LateVotes<typename State::Config>& late,
                                                float (&largest_log2)[State::Shape::kStepTiles][2],
                                                const typename State::Message& step) {
  const WorkTile row = at.reload_row();
  u32 counts = 0;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    float least[2], most[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float largest = largest_log2[t][r];
      least[r] = largest < kLeastWeightLog2 ? -kInfinity : largest - kRoundingLog2;
      most[r] = fmaxf(largest, kLeastWeightLog2) + kRoundingLog2;
    }
    const auto opens = [&](const float(&weights_log2)[2]) {
      return gate_opens(at, row, step, t, at.gate.of_weights(weights_log2, at.softmax, at.to_log2));
    };
    const bool counts_here = opens(least);
    if (!counts_here && opens(most)) return false;
    counts |= static_cast<u32>(counts_here) << t;
#pragma unroll
    for (int r = 0; r < 2; ++r) largest_log2[t][r] = quad_max(largest_log2[t][r]);
    at.gate.raise_by_weights(largest_log2[t], at.softmax, at.to_log2);
  }
  publish_votes(at, late, counts);
  return true;
}

/// Are the lane's weights of the step numbers that the lagging maximum serves?
template <class State>
__device__ __forceinline__ bool weights_fit(const LateVotes<typename State::Config>& late) {
  constexpr float kMost = WeightRange<typename State::Element>::kLargestSum;
  bool fits = true;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t)
    fits = fits & (late.sum[t][0] <= kMost) & (late.sum[t][1] <= kMost);
  return fits;
}

/// Do the sums of some weights say that all tiles of the step count, and that no row exceeds its
/// running maximum? So it mostly is, and no maximum is looked for. `largest`: of the sums of
/// kSummedWeights, which no weight of a lane exceeds. Without a branch, so that the tiles before
/// the last are asked about under its exponentials.
template <class State>
__device__ __forceinline__ bool all_count(const State& at,
                                          const LateVotes<typename State::Config>& late,
                                          const float (&largest)[State::Shape::kStepTiles][2],
                                          const typename State::Message& step) {
  using Config = typename State::Config;
  const WorkTile row = at.reload_row();
  // Where no row exceeds its running maximum, weights fit.
  bool opens = true, fits = Config::kGateReadsGap || weights_fit<State>(late);
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    const float largest_log2[2] = {log2_approx(largest[t][0]), log2_approx(largest[t][1])};
    GateStatistics lane = at.gate.of_weights(largest_log2, at.softmax, at.to_log2);
    if constexpr (Config::kGateReadsGap) fits = fits & (lane.gap <= -kRoundingLog2 * kLn2);
    lane.tile_max -= (kSummedWeightsLog2 + kRoundingLog2) * kLn2;
    lane.gap -= (kSummedWeightsLog2 + kRoundingLog2) * kLn2;
    opens = opens & gate_opens(at, row, step, t, lane);
  }
  return opens & __all_sync(kAllLanes, fits);
}

/// Scores of the step -> weights against the lagging maximum as it is, as if all its tiles counted;
/// then the warp's votes. False: weigh_late_again has to follow once O is complete.
template <class State, class Fragments>
__device__ __forceinline__ bool weigh_late(State& at, Fragments& fragments,
                                           StepScores<typename State::Config>& scores,
                                           const typename State::Message& step) {
  using Config = typename State::Config;
  constexpr int kTiles = State::Shape::kStepTiles;
  auto& late = fragments.late;
  if constexpr (Config::kHasScore) complete_group(at, scores, 0, step, false);
  float largest[kTiles][2];
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
    exponentiate_by_parts(late.sum[t], largest[t], weighed_part<Config>(scores, t),
                          at.softmax.lagging_max, at.to_log2);
  if (!all_count(at, late, largest, step) | fragments.has_fresh_row) return false;
  publish_votes(at, late, (1u << kTiles) - 1);
  return true;
}

/// After weigh_late has failed: votes by the largest weights. False: one is too large for
/// lower_weights or is NaN, as of a row without a lagging maximum, or vote_on_weights says it.
template <class State>
__device__ __forceinline__ bool vote_on_largest(State& at, LateVotes<typename State::Config>& late,
                                                StepScores<typename State::Config>& scores,
                                                const typename State::Message& step) {
  constexpr int kTiles = State::Shape::kStepTiles;
  float largest[kTiles][2];
  bool are_low = true;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    lane_maxima_of_weights(largest[t], weighed_part<typename State::Config>(scores, t));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      are_low = are_low && largest[t][r] < kMostLowered;
      largest[t][r] = log2_approx(largest[t][r]);
    }
  }
  return __all_sync(kAllLanes, are_low) && vote_on_weights(at, late, largest, step);
}

/// After weigh_late has failed. Seldom on real values, where a step has a row whose running maximum
/// it raises, or a tile that no row is sure of.
template <class State, class Fragments>
__device__ __forceinline__ void weigh_late_again(State& at, Fragments& fragments,
                                                 StepScores<typename State::Config>& scores,
                                                 const typename State::Message& step) {
  using Config = typename State::Config;
  constexpr int kTiles = State::Shape::kStepTiles;
  auto& late = fragments.late;
  float decay[2];
  if (vote_on_largest(at, late, scores, step)) {
    if (__all_sync(kAllLanes, weights_fit<State>(late))) return;
    LazyMax lowered = at.softmax;
    lower_weights(lowered, scores[0], decay);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      at.softmax.lagging_max[r] = lowered.lagging_max[r];
      at.softmax.sum[r] *= decay[r];  // without the weights: their tiles are still undecided
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      late.sum[t][0] = late.sum[t][1] = 0.0f;
      add_weights(late.sum[t], weighed_part<Config>(scores, t));
    }
  } else {
    multiply_scores_again(at, fragments, scores, step);
    vote_on_scores(at, late, scores, step);
    float maxima[2];
    row_maxima_wide(maxima, scores[0]);
    raise_lagging_max(at.softmax, decay, maxima, at.to_log2);
    const float offset[2] = {at.softmax.offset(0), at.softmax.offset(1)};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      late.sum[t][0] = late.sum[t][1] = 0.0f;
      exponentiate(late.sum[t], weighed_part<Config>(scores, t), offset, at.to_log2);
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
