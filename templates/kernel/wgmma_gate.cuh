// The gate of the wgmma family: a warpgroup decides about its 64 rows (its product with V is one
// instruction for four warps), or all consumer warpgroups decide together. Warps wait for what the
// others have published of a tile, not for one another:
//
//   publish       the warp's statistics of the tile, and an arrival at the vote's barrier
//   collect       all warps in scope have arrived: what they say together
//
// Votes have two places and barriers in turns: who publishes vote n + 2 has collected n + 1, which
// the others published after they had collected n.
#pragma once

#include "arch/redux.cuh"
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
  __device__ __forceinline__ WgmmaGate(WgmmaControl<Config>&, int) {}
  __device__ __forceinline__ void begin_row() {}
  __device__ __forceinline__ void raise(const float (&)[2]) {}
};

template <class Config>
class WgmmaGate<Config, true> {
  using Shape = WgmmaShape<Config>;
  using Vote = typename Shape::Vote;
  using Control = WgmmaControl<Config>;

 public:
  __device__ __forceinline__ WgmmaGate(Control& control, int warpgroup)
      : control_(control), warpgroup_(warpgroup) {}

  __device__ __forceinline__ void begin_row() { running_max_[0] = running_max_[1] = -kInfinity; }

  /// The row maxima of a tile that counts.
  __device__ __forceinline__ void raise(const float (&tile_max)[2]) {
    running_max_[0] = fmaxf(running_max_[0], tile_max[0]);
    running_max_[1] = fmaxf(running_max_[1], tile_max[1]);
  }
  /// The true one, in score units; the softmax may keep another.
  __device__ __forceinline__ const float (&running_max() const)[2] { return running_max_; }

  __device__ __forceinline__ void publish(int warp, const Vote& vote) {
    if (lane_index() == 0) {
      control_.votes[turns_.slot()][warpgroup_ * 4 + warp] = vote;
      voted(warpgroup_).arrive();
    }
  }

  __device__ __forceinline__ Vote collect() {
    if constexpr (Shape::kVotesByTile) {
#pragma unroll
      for (int w = 0; w < Config::kWarpgroups; ++w) voted(w).wait(turns_.phase());
    } else {
      voted(warpgroup_).wait(turns_.phase());
    }
    constexpr int kVoters = Shape::kVotesByTile ? Shape::kConsumerWarps : 4;
    const int first = Shape::kVotesByTile ? 0 : warpgroup_ * 4;
    Vote together;
#pragma unroll
    for (int w = 0; w < kVoters; ++w) together.include(control_.votes[turns_.slot()][first + w]);
    turns_.advance();
    return together;
  }

 private:
  __device__ __forceinline__ Mbarrier voted(int warpgroup) const {
    return WgmmaSmem<Config>::barrier(control_.voted[turns_.slot()][warpgroup]);
  }

  Control& control_;
  const int warpgroup_;
  RingPosition<2> turns_;
  float running_max_[2];
};

/// warp_gate_statistics by one instruction for each maximum, in place of a chain of exchanges.
__device__ __forceinline__ GateStatistics warp_statistics(const float (&tile_max)[2],
                                                          const float (&running_max)[2],
                                                          int last_row, float unit) {
  GateStatistics mine;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const bool takes_part = lane_index() / 4 + 8 * r <= last_row && tile_max[r] > -kInfinity;
    if (takes_part) mine.include({tile_max[r] * unit, (tile_max[r] - running_max[r]) * unit});
  }
  return {max_over_lanes(mine.tile_max), max_over_lanes(mine.gap)};
}

}  // namespace lacuna
