// What the wgmma family asks of a gate: is a tile of a row left out?
#pragma once

#include "pipeline/gate.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

/// Asks about key tile j. The statistics are those of all warps in scope together; `constants` are
/// those of the row.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool gate_skips(const Args& args, const WorkTile& row,
                                           const typename Hooks::GateRow& constants, int j,
                                           const GateStatistics& statistics) {
  const int k0 = j * Config::kTileK;
  const int k1 = smaller(k0 + Config::kTileK - 1, args.attend.n_k - 1);
  return Hooks::gate_skip(args, constants, statistics.tile_max, statistics.gap, row.i, j, row.q0,
                          row.q1, k0, k1, row.h, row.b);
}

}  // namespace lacuna
