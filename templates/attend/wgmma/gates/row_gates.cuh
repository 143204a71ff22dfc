// A gate where the rows of a work tile are those of several heads (takes_few_queries): each head
// decides for itself, and what is left out for one is computed for another. So a tile that counts
// for some heads is multiplied for all, and the rows of the others hide it, as under a mask.
//
// A head's queries are an aligned group of up to 16 rows, so those of one warp: group_queries is a
// power of two here. Lanes of the group tell one another their maxima by shuffles; no warp waits
// for another.
#pragma once

#include "attend/wgmma/gates/gate_question.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/results/wgmma_report.cuh"
#include "attend/wgmma/scores/lazy_max.cuh"

namespace lacuna {

/// What a lane keeps of its two rows.
template <class Config, bool kExist = gates_rows<Config>()>
struct RowGates {
  __device__ __forceinline__ void begin_row(bool) {}
};
template <class Config>
struct RowGates<Config, true> {
  float running_max[2];  ///< in score units, of tiles that count
  bool is_fresh[2];      ///< no tile of the row's head was visited: the first one always counts
  u32 hidden;            ///< of the step under way, bit 2 * tile + row: left out by the gate

  /// `is_first`: the item has the first tiles of its row.
  __device__ __forceinline__ void begin_row(bool is_first) {
#pragma unroll
    for (int r = 0; r < 2; ++r) running_max[r] = -kInfinity, is_fresh[r] = is_first;
    hidden = 0;
  }
};

/// The largest over the rows of a head, of which there are so many side by side in a warp.
__device__ __forceinline__ void merge_rows_of_head(float (&x)[2], int rows) {
  if (rows == kWarpRows) x[0] = x[1] = fmaxf(x[0], x[1]);
  for (int lanes = 4; lanes < 4 * smaller(rows, kWarpRows / 2); lanes *= 2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) x[r] = fmaxf(x[r], __shfl_xor_sync(kAllLanes, x[r], lanes));
  }
}

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
    // NaN, of a row that has seen nothing and sees nothing here, is left out.
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
