// What a consumer warpgroup reports of its work tiles (attend/report.cuh). Where a block has one
// work tile, the first warpgroup writes; where each warpgroup has its own, each does.
#pragma once

#include "attend/report.cuh"
#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "pipeline/gathered_keys.cuh"
#include "pipeline/kept_walk.cuh"

namespace lacuna {

/// Where all heads of a work tile visit the same tiles, nobody asks which.
template <class Config>
constexpr bool has_reports() {
  return !packs_heads<Config>() || takes_few_queries<Config>();
}

/// Does this warpgroup write the reports of its row?
template <class Config>
__device__ __forceinline__ bool writes_reports(const AttendArgs& args, const WorkTile& row,
                                               int warpgroup) {
  return has_reports<Config>() && wants_report(args) &&
         (WgmmaShape<Config>::kOwnRows ? row.i < row.q_tiles : warpgroup == 0);
}

/// Before the row's first report; by a warpgroup that writes them.
template <class Config, class Args, class Row>
__device__ __forceinline__ void open_reports(const Args& args, const Row& row, int warpgroup) {
  if constexpr (Config::kGathers) {
    report_gathered<kWarpgroupThreads, Config>(args_of_work_tile<Config>(args, row), args.attend,
                                               row, thread_of_row<Config>());
  } else if constexpr (WgmmaShape<Config>::kOwnRows) {
    open_report<Config, kWarpgroupThreads>(args.attend, row, thread_of_row<Config>());
    warpgroup_barrier(warpgroup).sync();
  } else {
    open_report<Config, kWarpgroupThreads>(args.attend, row);
    warpgroup_barrier(0).sync();
  }
}

/// The head's own row, of a work tile of several heads.
__device__ __forceinline__ WorkTile row_of_head(const WorkTile& row, int h) {
  WorkTile own = row;
  own.h = h;
  return own;
}

/// Is a tile visited for a head of a work tile: kept by it, if there are lists, and visible by its
/// pairs, if they were asked, or by the bounds of the mask? `args`: of the work tile.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool visits_tile(const Args& args, const SequenceTile& row, int h,
                                            int j) {
  bool visits = true;
  if constexpr (hides_rows<Config>()) visits = keeps_tile<Config>(args, row, h, j);
  if constexpr (asks_pairs<Config>()) {
    const ClassWords known = read_classes<Config>(args, row.b, h, row.i, j / 32);
    visits = visits && (known.visible >> j % 32 & 1u) != 0;
  } else if constexpr (Config::kHasMask) {
    const int k0 = j * Config::kTileK, k1 = smaller(k0 + Config::kTileK, args.attend.n_k) - 1;
    visits = visits && Hooks::tile_visible(args, row.q0, row.q1, k0, k1, h, row.b);
  }
  return visits;
}

/// By one thread: the visit of a tile, to the reports of those heads that keep and see it.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void write_visits_of_heads(const Args& launch, const SequenceTile& row,
                                                      int j) {
  decltype(auto) args = args_of_work_tile<Config>(launch, row);
#pragma unroll 1
  for (int h = row.h; h < row.h + args.attend.heads_per_kv; ++h) {
    if (visits_tile<Config, Hooks>(args, row, h, j))
      write_visit<Config>(launch.attend, row_of_head(row, h), j, false);
  }
}

/// Of a work tile of several heads: what each sees. By one warp.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void close_reports_of_heads(const Args& launch,
                                                       const SequenceTile& row) {
  if (launch.attend.counts == nullptr || warp_index() != 0) return;
#pragma unroll 1
  for (int h = row.h; h < row.h + launch.attend.heads_per_kv; ++h)
    count_visible<Config, Hooks>(args_of_work_tile<Config>(launch, row), launch.attend,
                                 row_of_head(row, h), thread_index());
}

/// Was a tile gated by all warpgroups whose row it is? One without a query row agrees. The barrier
/// stands in no condition that the compiler takes for divergent.
template <class Config>
__device__ __forceinline__ bool gated_by_all(const WorkTile& row, int warpgroup, bool gated) {
  if constexpr (Config::kGateScope == GateScope::kWarpgroup && !WgmmaShape<Config>::kOwnRows) {
    const bool has_rows = row.q0 + warpgroup * kWarpgroupRows <= row.q1;
    return consumer_barrier<Config>().sync_all(gated || !has_rows);
  }
  return gated;
}

}  // namespace lacuna
