// What a consumer warpgroup reports of its work tiles (attend/report.cuh). Where a block has one
// work tile, the first warpgroup writes; where each warpgroup has its own, each does.
#pragma once

#include "attend/report.cuh"
#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "pipeline/gathered_keys.cuh"

namespace lacuna {

/// Does this warpgroup write the reports of its row?
template <class Config>
__device__ __forceinline__ bool writes_reports(const AttendArgs& args, const WorkTile& row,
                                               int warpgroup) {
  return !packs_heads<Config>() && wants_report(args) &&
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
