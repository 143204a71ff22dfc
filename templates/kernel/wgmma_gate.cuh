// The gate of the wgmma family: a warpgroup decides about its 64 rows (its product with V is one
// instruction for four warps), or all consumer warpgroups decide together.
#pragma once

#include "kernel/wgmma_shape.cuh"

namespace lacuna {

/// Ids of named barriers.
__device__ __forceinline__ NamedBarrier turn_barrier(int warpgroup) {
  return {1 + warpgroup, 2 * kWarpgroupThreads};
}
__device__ __forceinline__ NamedBarrier warpgroup_barrier(int warpgroup) {
  return {4 + warpgroup, kWarpgroupThreads};
}
template <class Config>
__device__ __forceinline__ NamedBarrier consumer_barrier() {
  return {7, WgmmaShape<Config>::kConsumerThreads};
}

/// What a spec without a gate asks of one.
template <class Config, bool kExists = WgmmaShape<Config>::kHasGate>
class WgmmaGate {
 public:
  __device__ __forceinline__ WgmmaGate(typename WgmmaShape<Config>::Votes&, int) {}
  __device__ __forceinline__ void begin_row() {}
  __device__ __forceinline__ void raise(const float (&)[2]) {}
};

template <class Config>
class WgmmaGate<Config, true> {
  using Shape = WgmmaShape<Config>;
  using Votes = typename Shape::Votes;

 public:
  __device__ __forceinline__ WgmmaGate(Votes& votes, int warpgroup)
      : votes_(votes), warpgroup_(warpgroup) {}

  __device__ __forceinline__ void begin_row() { running_max_[0] = running_max_[1] = -kInfinity; }

  /// The row maxima of a tile that counts.
  __device__ __forceinline__ void raise(const float (&tile_max)[2]) {
    running_max_[0] = fmaxf(running_max_[0], tile_max[0]);
    running_max_[1] = fmaxf(running_max_[1], tile_max[1]);
  }

  /// Statistics of the rows in scope; all their warps take part. The two buffers make one barrier
  /// for each vote enough.
  __device__ __forceinline__ GateStatistics vote(int warp, const float (&tile_max)[2], int last_row,
                                                 float unit) {
    return vote(warp, warp_gate_statistics(tile_max, running_max_, last_row, unit));
  }
  /// The same of statistics that the warp has worked out.
  __device__ __forceinline__ GateStatistics vote(int warp, const GateStatistics& mine) {
    GateStatistics both[1] = {mine};
    vote_together(warp, both);
    return both[0];
  }
  /// Of several tiles at once, up to as many as a step has.
  template <int kTiles>
  __device__ __forceinline__ void vote_together(int warp, GateStatistics (&statistics)[kTiles]) {
    const int first = Shape::kVotesByTile ? 0 : warpgroup_ * 4;
    constexpr int kVoters = Shape::kVotesByTile ? Shape::kConsumerWarps : 4;
    if (lane_index() == 0) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) votes_[buffer_][t][warpgroup_ * 4 + warp] = statistics[t];
    }
    if constexpr (Shape::kVotesByTile) {
      consumer_barrier<Config>().sync();
    } else {
      warpgroup_barrier(warpgroup_).sync();
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      statistics[t] = {};
#pragma unroll
      for (int w = 0; w < kVoters; ++w) statistics[t].include(votes_[buffer_][t][first + w]);
    }
    buffer_ ^= 1;
  }

 private:
  Votes& votes_;
  const int warpgroup_;
  int buffer_ = 0;
  float running_max_[2];  ///< the true one, in score units; the softmax keeps another
};

}  // namespace lacuna
