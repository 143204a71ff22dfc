// The gate of the wgmma family: a warpgroup decides about its 64 rows (its product with V is one
// instruction for four warps), or all consumer warpgroups decide together. Warps wait for what the
// others have published of a tile, not for one another:
//
//   publish       the warp's statistics of the tile, and an arrival at the vote's barrier
//   collect       all warps in scope have arrived: what they say together
//
// Votes have two places, each with its barriers, used alternately: a warpgroup that publishes vote
// n + 2 has collected vote n + 1, which the others published after they had collected vote n, so
// no warp still reads the place it writes to. Where votes are about whole steps
// (attend/wgmma/gates/step_votes.cuh) only what a lane finds comes from here.
#pragma once

#include "arch/redux.cuh"
#include "attend/wgmma/layout/wgmma_smem.cuh"

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
  __device__ __forceinline__ void begin_row(int) {}
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

  /// `last_row`: of the query tile, counted from this warp's first. Rows behind it take no part:
  /// nothing exceeds their running maximum.
  __device__ __forceinline__ void begin_row(int last_row) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      running_max_[r] = lane_index() / 4 + 8 * r <= last_row ? -kInfinity : kInfinity;
  }

  /// The row maxima of a tile that counts.
  __device__ __forceinline__ void raise(const float (&row_max)[2]) {
    if constexpr (Config::kGateReadsGap) {
#pragma unroll
      for (int r = 0; r < 2; ++r) running_max_[r] = fmaxf(running_max_[r], row_max[r]);
    }
  }

  /// Of a tile that counts: may a score of the warp exceed its row's running maximum? A gate that
  /// reads no gap knows none. `maxima`: of rows, or of each lane's part of them.
  __device__ __forceinline__ bool exceeds(const float (&maxima)[2]) const {
    if constexpr (!Config::kGateReadsGap) return true;
    const bool exceeds = maxima[0] > running_max_[0] || maxima[1] > running_max_[1];
    return __any_sync(kAllLanes, exceeds);
  }

  /// What a lane has to say of a tile, of that what the gate reads, in score units: from maxima of
  /// rows, or of its part of them.
  __device__ __forceinline__ GateStatistics of_lane(const float (&maxima)[2]) const {
    GateStatistics lane;
    if constexpr (Config::kGateReadsTileMax) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        lane.tile_max =
            running_max_[r] < kInfinity ? fmaxf(lane.tile_max, maxima[r]) : lane.tile_max;
    }
    if constexpr (Config::kGateReadsGap) {
      // NaN, of a row that has seen nothing and sees nothing here, is left out.
      const float gap = fmaxf(maxima[0] - running_max_[0], maxima[1] - running_max_[1]);
      lane.gap = fmaxf(gap, -kInfinity);
    }
    return lane;
  }

  /// What the warp says of a tile. `unit`, positive, leads from scores to natural units.
  __device__ __forceinline__ GateStatistics statistics(const float (&maxima)[2], float unit) const {
    const GateStatistics lane = of_lane(maxima);
    GateStatistics warp;
    if constexpr (Config::kGateReadsTileMax) warp.tile_max = max_over_lanes(lane.tile_max) * unit;
    if constexpr (Config::kGateReadsGap) warp.gap = max_over_lanes(lane.gap) * unit;
    return warp;
  }

  __device__ __forceinline__ void publish(int warp, const Vote& vote) {
    if (lane_index() == 0) {
      control_.votes[position_.slot()][warpgroup_ * 4 + warp] = vote;
      voted(warpgroup_).arrive();
    }
  }

  __device__ __forceinline__ Vote collect() {
    if constexpr (Shape::kVotesByTile) {
#pragma unroll
      for (int w = 0; w < Config::kWarpgroups; ++w) voted(w).wait(position_.phase());
    } else {
      voted(warpgroup_).wait(position_.phase());
    }
    constexpr int kVoters = Shape::kVotesByTile ? Shape::kConsumerWarps : 4;
    const auto* votes = &control_.votes[position_.slot()][Shape::kVotesByTile ? 0 : warpgroup_ * 4];
    position_.advance();
    Vote together = votes[0];
#pragma unroll
    for (int w = 1; w < kVoters; ++w) together.include(votes[w]);
    return together;
  }

 private:
  __device__ __forceinline__ Mbarrier voted(int warpgroup) const {
    return WgmmaSmem<Config>::barrier(control_.voted[position_.slot()][warpgroup]);
  }

  Control& control_;
  const int warpgroup_;
  RingPosition<Shape::kVoteSlots> position_;
  float running_max_[2];  ///< the true one, in score units; the softmax may keep another
};

}  // namespace lacuna
