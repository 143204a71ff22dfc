// What the wgmma family asks of a gate: is a tile of a row left out?
#pragma once

#include "pipeline/gate.cuh"
#include "pipeline/tile_walk.cuh"
#include "pipeline/work_tile_args.cuh"

namespace lacuna {

/// Asks about key tile j. The statistics are those of all warps in scope together; `constants` are
/// those of the row.
template <class Config, class Hooks, class Args, class Row>
__device__ __forceinline__ bool gate_skips(const Args& launch, const Row& row,
                                           const typename Hooks::GateRow& constants, int j,
                                           const GateStatistics& statistics) {
  decltype(auto) args = args_of_work_tile<Config>(launch, row);
  const int k0 = j * Config::kTileK;
  const int k1 = smaller(k0 + Config::kTileK - 1, args.attend.n_k - 1);
  return Hooks::gate_skip(args, constants, statistics.tile_max, statistics.gap, row.i, j, row.q0,
                          row.q1, k0, k1, row.h, row.b);
}

/// What the gate compares with in a row.
template <class Config, class Hooks, class Args, class Row>
__device__ __forceinline__ auto gate_of_row(const Args& args, const Row& row) {
  return Hooks::gate_row(args_of_work_tile<Config>(args, row), row.i, row.q0, row.q1, row.h, row.b);
}

}  // namespace lacuna
