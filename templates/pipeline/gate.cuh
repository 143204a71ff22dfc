// In-kernel gates: statistics of a tile's scores over the rows in scope, from which
// Hooks::gate_skip decides. A warp decides for its 16 rows, or all warps of the block decide
// together.
#pragma once

#include "arch/warp.cuh"
#include "base/math.cuh"

namespace lacuna {

enum class GateScope { kNone, kWarp, kWarpgroup, kTile };

/// In natural units. A row without a visible key in the tile does not take part; without any row
/// both are -inf.
struct GateStatistics {
  float tile_max = -kInfinity;  ///< largest row maximum of this tile
  float gap = -kInfinity;       ///< largest (row maximum - running maximum); +inf for a fresh row

  __device__ __forceinline__ void include(const GateStatistics& other) {
    tile_max = fmaxf(tile_max, other.tile_max);
    gap = fmaxf(gap, other.gap);
  }
};

/// The largest scores of several tiles, for a gate that reads no gap: as ordered_bits.
template <int kTiles>
struct alignas(4 * kTiles) StepMaxima {
  int tile_max[kTiles];
};

/// Over the warp's 16 rows. `unit` leads from scores to natural units; rows after
/// `last_row` do not exist.
__device__ __forceinline__ GateStatistics warp_gate_statistics(const float (&tile_max)[2],
                                                               const float (&running_max)[2],
                                                               int last_row, float unit) {
  GateStatistics result;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (lane_index() / 4 + 8 * r > last_row || tile_max[r] == -kInfinity) continue;
    result.include({tile_max[r] * unit, (tile_max[r] - running_max[r]) * unit});
  }
  return {max_over_quads(result.tile_max), max_over_quads(result.gap)};
}

/// Exchange of the warps' statistics through shared memory. publish(t), a block barrier,
/// collect(t): the two buffers make that one barrier for each tile enough.
template <int kWarps>
class GateVote {
 public:
  static constexpr int kBytes = 2 * kWarps * static_cast<int>(sizeof(GateStatistics));

  __device__ __forceinline__ explicit GateVote(unsigned char* memory)
      : slots_(reinterpret_cast<GateStatistics*>(memory)) {}

  __device__ __forceinline__ void publish(int t, int warp, const GateStatistics& statistics) {
    if (lane_index() == 0) slots_[t % 2 * kWarps + warp] = statistics;
  }

  __device__ __forceinline__ GateStatistics collect(int t) const {
    GateStatistics result;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) result.include(slots_[t % 2 * kWarps + warp]);
    return result;
  }

 private:
  GateStatistics* slots_;
};

}  // namespace lacuna
