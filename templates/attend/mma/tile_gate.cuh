// Whether the gate skips a tile.
#pragma once

#include "attend/mma/attend_block.cuh"

namespace lacuna {

/// Is the t-th visited tile, which is tile j, skipped?
template <class Block>
__device__ __forceinline__ bool decide_tile(const Block& at, int t, int j,
                                            GateStatistics statistics) {
  using Config = typename Block::Config;
  using Hooks = typename Block::Hooks;
  using Shape = typename Block::Shape;
  if constexpr (Shape::kVotesByTile) statistics = at.vote.collect(t);
  const int k0 = j * Config::kTileK;
  const int k1 = smaller(k0 + Config::kTileK - 1, at.args.attend.n_k - 1);
  const auto constants =
      Hooks::gate_row(at.args, at.row.i, at.row.q0, at.row.q1, at.row.h, at.row.b);
  const bool skip = Hooks::gate_skip(at.args, constants, statistics.tile_max, statistics.gap,
                                     at.row.i, j, at.row.q0, at.row.q1, k0, k1, at.row.h, at.row.b);
  return __any_sync(kAllLanes, skip);
}

/// Did every warp gate the tile? Warps without a query row agree. Asked only where it is
/// reported.
template <class Block>
__device__ __forceinline__ bool gated_by_block(const Block& at, bool gated) {
  using Config = typename Block::Config;
  if constexpr (Config::kGateScope != GateScope::kWarp) return gated;
  const WorkTile row = locate_work_tile<Config>(at.args.attend, block_index());
  const bool has_rows = row.q0 + at.row_warp() * kWarpRows <= row.q1;
  return __syncthreads_and(gated || !has_rows) != 0;
}

}  // namespace lacuna
