// What a consumer of the wgmma family asks the gate about a tile, notes of the answer and reports.
// Decisions a step ahead are the producer's (attend/wgmma/producers/tile_gate_producer.cuh), those
// on whole steps the 8-bit consumer's (attend/wgmma/consumers/int8/int8_gate.cuh).
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/gates/gate_question.cuh"
#include "attend/wgmma/results/wgmma_report.cuh"

namespace lacuna {

template <class State>
__device__ __forceinline__ bool reports(const State& at, const WorkTile& row) {
  return writes_reports<typename State::Config>(at.args.attend, row, at.warpgroup);
}

/// Writes the report of a visited tile; `tile` may be missing. All warpgroups of the row call it.
template <class State>
__device__ __forceinline__ void report(const State& at, TileRef tile, bool gated) {
  using Config = typename State::Config;
  if constexpr (takes_few_queries<Config>()) {
    if (tile.exists() && thread_of_row<Config>() == 0)
      write_visits_of_heads<Config, typename State::Hooks>(at.args, at.reload_row(), tile.index());
    return;
  }
  gated = gated_by_all<Config>(at.row, at.warpgroup, gated);
  if (tile.exists() && thread_of_row<Config>() == 0)
    write_visit<Config>(at.args.attend, at.reload_row(), tile.index(), gated);
}

/// Writes the reports of a step whose tiles all count.
template <class State>
__device__ __forceinline__ void report_step(const State& at, const typename State::Message& step) {
  if (!wants_report(at.args.attend)) return;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    if (step.tiles[t].exists()) report(at, step.tiles[t], false);
  }
}

/// Is group g the first tile of its row? That one always counts. Asked once for each tile;
/// kFirst: it is of the first step, or of the first after one that was passed on.
template <bool kFirst, class State>
__device__ __forceinline__ bool is_first_of_row(State& at, int g, TileRef tile) {
  if constexpr (State::Shape::kOwnRows) {
    const bool first = kFirst && at.is_fresh && tile.exists();
    if (first) at.is_fresh = false;
    return first;
  } else {
    return kFirst && g == 0;
  }
}

/// Takes note of the decision about group g: whether it has weights, and its report. The group's
/// tile may be missing.
template <class State>
__device__ __forceinline__ void note_decision(State& at, int g, TileRef tile, bool gated) {
  at.has_weights[g] = tile.exists() && !(State::Config::kSkipsPv && gated);
  if (__builtin_expect(wants_report(at.args.attend), false)) report(at, tile, gated);
}

/// Does the gate leave the tile out? The same in all lanes; of no meaning where the tile is
/// missing.
template <class State>
__device__ __forceinline__ bool gate_skips_all(const State& at, const typename State::Row& row,
                                               TileRef tile, const GateStatistics& statistics) {
  const int j = tile.exists() ? tile.index() : 0;
  return __any_sync(kAllLanes, gate_skips<typename State::Config, typename State::Hooks>(
                                   at.args, row, at.gate_row, j, statistics));
}

/// `maxima`: of rows, or of each lane's part of them. True: the gate is closed.
template <class State>
__device__ __forceinline__ bool decide(State& at, TileRef tile, const float (&maxima)[2]) {
  const typename State::Row row = at.reload_row();  // no registers are left to keep it
  if constexpr (State::Shape::kWarpsKnow) {
    GateStatistics lane = at.gate.of_lane(maxima);
    lane.tile_max *= at.unit();
    lane.gap *= at.unit();
    const bool opens = !gate_skips<typename State::Config, typename State::Hooks>(
        at.args, row, at.gate_row, tile.index(), lane);
    const bool counts = __any_sync(kAllLanes, opens);
    at.votes.publish(counts);
    return !counts && at.votes.collect() == 0;
  } else {
    at.gate.publish(warp_of_warpgroup(), at.gate.statistics(maxima, at.unit()));
    return gate_skips_all(at, row, tile, at.gate.collect());
  }
}

/// Asks the gate about group g, which is a tile. False: it is left out of the softmax.
template <bool kFirst, class State>
__device__ __forceinline__ bool gate_counts(State& at, int g, TileRef tile,
                                            const float (&maxima)[2]) {
  const bool decides = tile.exists() && !is_first_of_row<kFirst>(at, g, tile);
  const bool gated = decides && decide(at, tile, maxima);
  note_decision(at, g, tile, gated);
  return !(State::Config::kSkipsExp && gated);
}

}  // namespace lacuna
