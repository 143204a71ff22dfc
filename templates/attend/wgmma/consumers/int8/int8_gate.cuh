// The gate of an Int8Consumer. It compares with the true running maximum, which it keeps beside the
// softmax's lagging maximum. A gate that skips nothing but products with V is usually evaluated
// late (attend/wgmma/gates/step_votes.cuh): after the next step's scores were issued, and before
// the product that it may skip is.
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/consumers/tile_decision.cuh"
#include "attend/wgmma/gates/gate_question.cuh"

namespace lacuna {

/// Of each group: the maxima of a lane's scores, as logits, and what the lane tells a gate of them.
template <class Config>
using LaneMaxima = float[WgmmaShape<Config>::kGroups][2];
template <class Config>
using LaneVotes = GateStatistics[WgmmaShape<Config>::kGroups];

/// What is known of the step whose product with V is due.
template <class Config>
struct DueVotes {
  u32 counts, there;  ///< groups that count for this warp, and those that are tiles
  bool all_count;     ///< all groups count for this warp, and no report is wanted
  TileRef tiles[WgmmaShape<Config>::kGroups];  ///< read where not all count
};

/// Which groups count in the softmax, and the lane's maxima of those. A gate that is not asked late
/// is asked about groups, each a tile, one after the other, as each changes the running maximum.
template <bool kFirst, class State, class Maxima>
__device__ __forceinline__ void ask_gate(State& at, bool (&takes_part)[State::Shape::kGroups],
                                         float (&step_max)[2], const Maxima& maxima,
                                         const typename State::Message& step) {
  using Shape = typename State::Shape;
#pragma unroll
  for (int g = 0; g < Shape::kGroups; ++g) {
    takes_part[g] = true;
    if constexpr (Shape::kHasGate && !Shape::kVotesOnSteps) {
      at.gate.publish(warp_of_warpgroup(), at.gate.statistics(maxima[g], at.unit()));
      const TileRef tile = step.tiles[g];
      const bool is_first = is_first_of_row<kFirst>(at, g, tile);
      const bool skips = gate_skips_all(at, at.reload_row(), tile, at.gate.collect());
      const bool gated = skips && tile.exists() && !is_first;
      note_decision(at, g, tile, gated);
      takes_part[g] = !(State::Config::kSkipsExp && gated);
      if (!takes_part[g]) continue;
      at.gate.raise({quad_max(maxima[g][0]), quad_max(maxima[g][1])});
    }
    step_max[0] = fmaxf(step_max[0], maxima[g][0]);
    step_max[1] = fmaxf(step_max[1], maxima[g][1]);
  }
}

/// The lane's vote on each group. True: a row of the warp has outgrown the lagging maximum, which
/// is the running maximum itself where a gate needs it.
template <class State, class Maxima>
__device__ __forceinline__ bool find_votes(const State& at,
                                           LaneVotes<typename State::Config>& votes,
                                           const Maxima& maxima, const float (&step_max)[2],
                                           float slack_log2) {
  using Shape = typename State::Shape;
  if constexpr (Shape::kVotesOnSteps) {
    float largest_gap = -kInfinity;
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      votes[g] = at.gate.of_lane(maxima[g]);
      largest_gap = fmaxf(largest_gap, votes[g].gap);
    }
    if constexpr (State::Config::kGateReadsGap) return __any_sync(kAllLanes, largest_gap > 0.0f);
  }
  return outgrows(at.softmax, step_max, at.to_log2, slack_log2);
}

/// The same where a group may raise the running maximum for those behind it; and the maxima of the
/// rows.
template <class State, class Maxima>
__device__ __forceinline__ void find_votes_in_turn(State& at,
                                                   LaneVotes<typename State::Config>& votes,
                                                   float (&row_max)[2], const Maxima& maxima) {
  LaneMaxima<typename State::Config> rows;
  row_max[0] = row_max[1] = -kInfinity;
#pragma unroll
  for (int g = 0; g < State::Shape::kGroups; ++g) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows[g][r] = quad_max(maxima[g][r]);
      row_max[r] = fmaxf(row_max[r], rows[g][r]);
    }
  }
#pragma unroll
  for (int g = 0; g < State::Shape::kGroups; ++g) {
    votes[g] = at.gate.of_lane(rows[g]);
    at.gate.raise(rows[g]);
  }
}

/// Maxima of the rows in a step that raises the lagging maximum.
template <class State, class Maxima>
__device__ __forceinline__ void find_row_maxima(State& at, LaneVotes<typename State::Config>& votes,
                                                float (&row_max)[2], const Maxima& maxima,
                                                const float (&step_max)[2]) {
  if constexpr (State::Shape::kVotesOnSteps) {
    find_votes_in_turn(at, votes, row_max, maxima);
  } else {
    for (int r = 0; r < 2; ++r) row_max[r] = quad_max(step_max[r]);
  }
}

/// `is_usual`: there are all tiles of the step, and no report is wanted.
template <bool kFirst, class State>
__device__ __forceinline__ void publish_votes(State& at, DueVotes<typename State::Config>& due,
                                              const LaneVotes<typename State::Config>& votes,
                                              const typename State::Message& step, bool is_usual) {
  if constexpr (State::Shape::kVotesOnSteps) {
    const typename State::Row row = at.reload_row();
    due.counts = due.there = 0;
#pragma unroll
    for (int g = 0; g < State::Shape::kGroups; ++g) {
      const TileRef tile = step.tiles[g];
      const bool exists = is_usual || tile.exists();
      const GateStatistics lane = {votes[g].tile_max * at.unit(), votes[g].gap * at.unit()};
      const bool skips = gate_skips<typename State::Config, typename State::Hooks>(
          at.args, row, at.gate_row, exists ? tile.index() : 0, lane);
      const bool is_first = is_first_of_row<kFirst>(at, g, tile);
      const bool counts = __any_sync(kAllLanes, !skips || is_first);
      due.counts |= static_cast<u32>(counts && exists) << g;
      due.there |= static_cast<u32>(exists) << g;
      if (!is_usual) due.tiles[g] = tile;
    }
    due.counts = uniform_over_warp(due.counts);
    due.all_count = is_usual && due.counts == due.there;
    at.votes.publish(due.counts);
  }
}

/// Which groups of the step whose product is due are multiplied with their values.
template <class State>
__device__ __forceinline__ void settle_votes(State& at,
                                             const DueVotes<typename State::Config>& due) {
  constexpr int kGroups = State::Shape::kGroups;
  u32 counts = due.counts;
  if (counts != due.there) counts = at.votes.collect();
#pragma unroll
  for (int g = 0; g < kGroups; ++g) at.has_weights[g] = (counts >> g & 1) != 0;
  if (__builtin_expect(wants_report(at.args.attend), false)) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      report(at, due.tiles[g], due.tiles[g].exists() && !at.has_weights[g]);
  }
}

}  // namespace lacuna
