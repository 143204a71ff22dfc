// Scores of a step in registers, group by group, and hook and mask on them.
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/scores/wgmma_scores.cuh"

namespace lacuna {

/// `Number`: float, or int while they are sums of integers.
template <class Config, class Number = float>
using StepScores = Number[WgmmaShape<Config>::kGroups][WgmmaShape<Config>::kGroupBlocks][4];

/// Those of the n-th kKeys keys of a step, which are one group.
template <int kKeys>
using PartScores = float[kKeys / 8][4];
template <int kKeys, int kBlocks>
__device__ __forceinline__ PartScores<kKeys>& part_of(float (&scores)[1][kBlocks][4], int n) {
  return *reinterpret_cast<PartScores<kKeys>*>(&scores[0][n * kKeys / 8]);
}
template <int kKeys, int kBlocks>
__device__ __forceinline__ const PartScores<kKeys>& part_of(const float (&scores)[1][kBlocks][4],
                                                            int n) {
  return *reinterpret_cast<const PartScores<kKeys>*>(&scores[0][n * kKeys / 8]);
}

/// Those that are weighed at a time: of a tile that a gate decides about, or of a group.
template <class Config>
__device__ __forceinline__ auto& weighed_part(StepScores<Config>& scores, int n) {
  if constexpr (WgmmaShape<Config>::kWarpsKnow) {
    return part_of<Config::kTileK>(scores, n);
  } else {
    return scores[n];
  }
}

/// Hook and mask on all groups. The row is read for it: few steps ask for the mask.
template <class State>
__device__ __forceinline__ void complete_step(const State& at,
                                              StepScores<typename State::Config>& scores,
                                              const typename State::Message& step) {
  const typename State::Row row = at.reload_row();
#pragma unroll
  for (int g = 0; g < State::Shape::kGroups; ++g) {
    complete_scores<typename State::Config, typename State::Hooks>(
        args_of_work_tile<typename State::Config>(at.args, row), row, at.lane_rows(row), scores[g],
        g, step, at.tile_keys());
  }
}

}  // namespace lacuna
