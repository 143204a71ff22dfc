// Scores of a step in registers, group by group, and hook and mask on them.
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/scores/wgmma_scores.cuh"

namespace lacuna {

/// `Number`: float, or int while they are sums of integers.
template <class Config, class Number = float>
using StepScores = Number[WgmmaShape<Config>::kGroups][WgmmaShape<Config>::kGroupBlocks][4];

/// Hook and mask on all groups. The row is read for it: few steps ask for the mask.
template <class State>
__device__ __forceinline__ void complete_step(const State& at,
                                              StepScores<typename State::Config>& scores,
                                              const typename State::Message& step) {
  const WorkTile row = at.reload_row();
#pragma unroll
  for (int g = 0; g < State::Shape::kGroups; ++g) {
    complete_scores<typename State::Config, typename State::Hooks>(
        at.args, row, at.lane_rows(row), scores[g], g, step, at.tile_keys());
  }
}

}  // namespace lacuna
