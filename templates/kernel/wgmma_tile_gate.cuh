// A gate of scope tile that knows no gap: what it decides depends on the tile's own maximum alone.
// So warpgroups wait for what the others have published, not for one another:
//
//   publish       the warp's maximum of the tile, and an arrival on the step's barrier
//   await_all     all warps of the block have arrived
//   collect       the tile's maximum
//
// Two steps have a place and a barrier each: who publishes step j + 2 has seen that all published
// j + 1, which they do after they have read j.
#pragma once

#include "kernel/wgmma_gate.cuh"

namespace lacuna {

template <class Config>
class TileGate {
  using Shape = WgmmaShape<Config>;

  using Control = WgmmaControl<Config>;

 public:
  __device__ __forceinline__ TileGate(Control& control, int warpgroup)
      : control_(control), warpgroup_(warpgroup) {}

  /// The warp's maximum, in natural units; -inf if it has no visible score.
  __device__ __forceinline__ void publish(int warp, float maximum) {
    if (lane_index() == 0) {
      control_.tile_votes[steps_.slot()][warpgroup_ * 4 + warp] = maximum;
      voted(warpgroup_).arrive();
    }
  }

  __device__ __forceinline__ void await_all() const {
#pragma unroll
    for (int w = 0; w < Config::kWarpgroups; ++w) voted(w).wait(steps_.phase());
  }
  __device__ __forceinline__ float collect() const {
    float maximum = -kInfinity;
#pragma unroll
    for (int w = 0; w < Shape::kConsumerWarps; ++w)
      maximum = fmaxf(maximum, control_.tile_votes[steps_.slot()][w]);
    return maximum;
  }
  __device__ __forceinline__ void next_step() { steps_.advance(); }

 private:
  __device__ __forceinline__ Mbarrier voted(int warpgroup) const {
    return WgmmaSmem<Config>::barrier(control_.voted[steps_.slot()][warpgroup]);
  }

  Control& control_;
  const int warpgroup_;
  RingPosition<2> steps_;
};

/// Over the warp's rows up to `last_row`, from the maxima of a lane's two.
__device__ __forceinline__ float warp_maximum(const float (&maxima)[2], int last_row) {
  const int row = lane_index() / 4;
  const float first = row <= last_row ? maxima[0] : -kInfinity;
  const float second = row + 8 <= last_row ? maxima[1] : -kInfinity;
  return max_over_lanes(fmaxf(first, second));
}

}  // namespace lacuna
