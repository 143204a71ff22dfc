// Which query rows of a block's work tiles are a consumer warpgroup's, a warp's and a lane's.
#pragma once

#include "arch/warp.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "pipeline/lane_rows.cuh"

namespace lacuna {

/// This warp, of the four of its warpgroup; worked out where it is wanted.
__device__ __forceinline__ int warp_of_warpgroup() {
  return static_cast<int>(static_cast<u32>(thread_index()) / 32 % 4);
}

/// This thread, among those of the warpgroups that share its work tile.
template <class Config>
__device__ __forceinline__ int thread_of_row() {
  return WgmmaShape<Config>::kOwnRows ? thread_index() % kWarpgroupThreads : thread_index();
}

/// Of the work tile's batch entry, or of its sequence.
template <class Args>
__device__ __forceinline__ int queries_of(const Args& args, const WorkTile&) {
  return args.attend.n_q;
}
template <class Args>
__device__ __forceinline__ int queries_of(const Args&, const SequenceTile& row) {
  return row.n_q;
}

/// The warpgroup's work tile, of those that the block takes together from `row` on.
template <class Config, class Args>
__device__ __forceinline__ typename Config::Row row_of_warpgroup(const Args& args,
                                                                 typename Config::Row row,
                                                                 int warpgroup) {
  if constexpr (WgmmaShape<Config>::kOwnRows) {
    row.i += warpgroup;
    row.q0 += warpgroup * Config::kTileQ;
    row.q1 = smaller(row.q0 + Config::kTileQ, queries_of(args, row)) - 1;
  }
  return row;
}

/// First query token of this warp.
template <class Config>
__device__ __forceinline__ int first_row_of_warp(const WorkTile& row) {
  return row.q0 + thread_of_row<Config>() / 32 * kWarpRows;
}

/// What lane_rows_of returns.
template <class Config, bool kPacksHeads = packs_heads<Config>()>
struct LaneRowsChoice {
  using Type = LaneRows;
};
template <class Config>
struct LaneRowsChoice<Config, true> {
  using Type = PackedRows;
};
template <class Config>
using LaneRowsOf = typename LaneRowsChoice<Config>::Type;

/// Queries of this lane's accumulators.
template <class Config, class Args>
__device__ __forceinline__ LaneRowsOf<Config> lane_rows_of(const Args& args,
                                                           const typename Config::Row& row,
                                                           int warpgroup) {
  if constexpr (packs_heads<Config>()) {
    return packed_rows(args, row, warpgroup, warp_of_warpgroup() * kWarpRows + lane_index() / 4);
  } else {
    return LaneRows{first_row_of_warp<Config>(row) + lane_index() / 4, row.h};
  }
}

}  // namespace lacuna
