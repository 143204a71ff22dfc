// The gate of a work tile whose rows are those of several heads (attend/wgmma/gates/row_gates.cuh),
// in the 16-bit consumer of the wgmma family: where the gate of a head leaves out a tile, the rows
// of that head get no weight from it.
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/results/wgmma_report.cuh"

namespace lacuna {

/// What the gate reads of tile t of a step, for the heads of the lane's two rows. `maxima`: of
/// these rows.
template <class State>
__device__ __forceinline__ void statistics_of_heads(const State& at, GateStatistics (&of)[2],
                                                    const float (&maxima)[2]) {
  using Config = typename State::Config;
  const int rows = at.args.batch_schedule.group_queries;
  float tile_max[2], gap[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    tile_max[r] = maxima[r];
    // A row that has seen no key and sees none here has a gap of NaN, which does not count.
    gap[r] = fmaxf(maxima[r] - at.row_gates.running_max[r], -kInfinity);
  }
  if constexpr (Config::kGateReadsTileMax) merge_rows_of_head(tile_max, rows);
  if constexpr (Config::kGateReadsGap) merge_rows_of_head(gap, rows);
#pragma unroll
  for (int r = 0; r < 2; ++r) of[r] = {tile_max[r] * at.unit(), gap[r] * at.unit()};
}

/// Hides tiles of a step from the rows whose heads the gate leaves out, and reports. By a whole
/// warp; `scores`: all of the step, behind the mask.
template <class State, int kBlocks>
__device__ __forceinline__ void gate_rows(State& at, float (&scores)[kBlocks][4],
                                          const typename State::Message& step) {
  using Config = typename State::Config;
  using Hooks = typename State::Hooks;
  constexpr int kTileBlocks = Config::kTileK / 8;
  const typename State::Row row = at.reload_row();
  decltype(auto) args = args_of_work_tile<Config>(at.args, row);
  const auto lane = at.lane_rows(row);
  at.row_gates.hidden = 0;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    if (!step.tiles[t].exists()) continue;
    const int j = step.tiles[t].index();
    auto& of_tile = reinterpret_cast<float(&)[kTileBlocks][4]>(scores[t * kTileBlocks]);
    float maxima[2];
    lane_maxima(maxima, of_tile);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float of_row = quad_max(maxima[r]);
      maxima[r] = lane.are_rows[r] ? of_row : -kInfinity;
    }
    GateStatistics statistics[2];
    statistics_of_heads(at, statistics, maxima);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool visits = visits_tile<Config, Hooks>(args, row, lane.h(r), j);
      const auto constants = Hooks::gate_row(args, row.i, row.q0, row.q1, lane.h(r), row.b);
      const int k0 = j * Config::kTileK, k1 = smaller(k0 + Config::kTileK, args.attend.n_k) - 1;
      const bool gated =
          visits && !at.row_gates.is_fresh[r] &&
          Hooks::gate_skip(args, constants, statistics[r].tile_max, statistics[r].gap, row.i, j,
                           row.q0, row.q1, k0, k1, lane.h(r), row.b);
      if (visits) at.row_gates.is_fresh[r] = false;
      if constexpr (Config::kGateReadsGap)
        if (!gated) at.row_gates.running_max[r] = fmaxf(at.row_gates.running_max[r], maxima[r]);
      at.row_gates.hidden |= static_cast<u32>(gated) << (2 * t + r);
#pragma unroll
      for (int n = 0; n < kTileBlocks; ++n) {
        if (gated) of_tile[n][2 * r] = of_tile[n][2 * r + 1] = -kInfinity;
      }
      if (wants_report(at.args.attend)) {
        const bool is_first_of_head = lane.are_rows[r] && lane.q(r) == row.q0;
        if (visits && is_first_of_head && lane_index() % 4 == 0)
          write_visit<Config>(at.args.attend, row_of_head(row, lane.h(r)), j, gated);
        __syncwarp();
      }
    }
  }
}

/// Of scores that were computed a second time.
template <class State, int kBlocks>
__device__ __forceinline__ void hide_gated_rows(const State& at, float (&scores)[kBlocks][4]) {
  constexpr int kTileBlocks = State::Config::kTileK / 8;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((at.row_gates.hidden >> (2 * (n / kTileBlocks) + i / 2) & 1u) != 0)
        scores[n][i] = -kInfinity;
    }
  }
}

}  // namespace lacuna
