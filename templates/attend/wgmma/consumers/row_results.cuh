// The end of a row in a consumer of the wgmma family: O, LSE and reports, of a work tile that saw
// keys or none. Which way O takes follows from the Config:
//
//   one launch of one shape    through the queries' place and the copy engine (wgmma_epilogue.cuh)
//   items of split work tiles  partial results (attend/partial_results.cuh), for a kernel behind
//   heads packed in a tile     the same way, or partial results and a merge (packed_results.cuh)
#pragma once

#include "attend/epilogue.cuh"
#include "attend/partial_results.cuh"
#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/consumers/tile_decision.cuh"
#include "attend/wgmma/results/packed_results.cuh"
#include "attend/wgmma/results/wgmma_epilogue.cuh"
#include "attend/wgmma/results/wgmma_report.cuh"

namespace lacuna {

/// O of a whole row through the place of its queries, `staging`, and the copy engine.
template <class State>
__device__ __forceinline__ void store_row(State& at, const typename State::Row& row,
                                          const float (&sum)[2], u32 staging) {
  using Config = typename State::Config;
  using Tile = typename State::Shape::OutputTile;
  float denominators[2] = {sum[0], sum[1]};
  take_sinks<Config, typename State::Hooks>(denominators, args_of_work_tile<Config>(at.args, row),
                                            row.b, at.lane_rows(row), at.softmax, at.to_log2,
                                            range_log2<Config>());
  output_to_smem<typename State::Element, Tile>(staging, warp_of_warpgroup(), at.output,
                                                denominators);
  if constexpr (has_sequence_tiles<Config>()) {
    store_packed_output<Config>(at.args, staging, {at.warpgroup, warp_of_warpgroup()}, row);
  } else {
    store_output<Tile>(at.args.maps.o, staging, warp_of_warpgroup(), first_row_of_warp<Config>(row),
                       row);
  }
}

/// Is the row one of several items, whose results are partial?
template <class State>
__device__ __forceinline__ bool is_item(const State&, const typename State::Row& row) {
  using Config = typename State::Config;
  if constexpr (has_sequence_tiles<Config>()) return items_of<Config>(row) > 1;
  return false;
}

/// O through the queries' place, which is then the producer's again; that of an item of a split
/// row goes another way. `kIsChained`: at.queries are those of the next row already.
template <bool kIsChained = false, class State>
__device__ __forceinline__ void write_output(State& at) {
  using Config = typename State::Config;
  using Shape = typename State::Shape;
  const typename State::Row row = at.reload_row();
  const float sum[2] = {quad_sum(at.softmax.sum[0]), quad_sum(at.softmax.sum[1])};
  const auto queries = kIsChained ? at.queries.before() : at.queries;
  const u32 staging = at.smem.queries(queries.slot(), at.warpgroup);
  if constexpr (Shape::kHasE4m3Values) {
    const int heads_per_kv = at.args.attend.heads_per_kv;
    const long long head_kv =
        prepared_head<Config>(row.b, row.h / heads_per_kv, row.n_h / heads_per_kv);
    scale_channels(at.output, prepared_of<Config>(at.args, at.args.predict.v_scale, row.b) +
                                  head_kv * Config::kHeadDim);
  }
  if constexpr (SplitKv<Config>::kIsSplit) {
    __syncwarp();
    at.release_queries();
  } else {
    if (!is_item(at, row)) store_row(at, row, sum, staging);
    if constexpr (has_sequence_tiles<Config>()) __syncwarp();
    if constexpr (!kIsChained) at.queries.advance();
    at.has_stored = true;
    if constexpr (Config::kQueryBuffers == 1) at.finish_store();
  }
}

template <class State>
__device__ __forceinline__ void write_zeros(const State& at) {
  using Config = typename State::Config;
  using Shape = typename State::Shape;
  const WorkTile row = Shape::kOwnRows ? at.reload_row() : at.row;
  const TensorArg& o = at.args.attend.o;
  auto* head =
      static_cast<typename State::Element*>(o.data) + row.b * o.stride_b + row.h * o.stride_h;
  constexpr int kChunks = Shape::kHeadDimV / 8;
  constexpr int kThreads = Shape::kConsumerThreads / Config::kWorkTiles;
  for (int n = thread_of_row<Config>(); n < Config::kTileQ * kChunks; n += kThreads) {
    const int q = row.q0 + n / kChunks;
    if (q > row.q1) break;
    *reinterpret_cast<uint4*>(head + q * o.stride_n + n % kChunks * 8) = {0, 0, 0, 0};
  }
}

/// A work tile that sees nothing: O is 0; that of an item, as `output` is.
template <class State>
__device__ __forceinline__ void write_output_of_none(const State& at) {
  using Config = typename State::Config;
  if constexpr (has_sequence_tiles<Config>()) {
    const typename State::Row row = at.reload_row();
    if (items_of<Config>(row) == 1)
      clear_packed_rows<Config>(at.args, row, {at.warpgroup, warp_of_warpgroup()});
  } else if constexpr (!SplitKv<Config>::kIsSplit) {
    write_zeros(at);
  }
}

template <class State>
__device__ __forceinline__ void write_logarithms(const State& at) {
  using Config = typename State::Config;
  const WorkTile row = at.reload_row();
  const float sum[2] = {quad_sum(at.softmax.sum[0]), quad_sum(at.softmax.sum[1])};
  write_lse<Config, typename State::Hooks>(at.args, at.args.attend.lse, row.b, at.lane_rows(row),
                                           at.softmax, sum, at.to_log2, range_log2<Config>());
}

/// LSE of a whole work tile; of an item its partial results, and the merge if it is the last.
template <class State>
__device__ __forceinline__ void finish_packed(const State& at) {
  using Config = typename State::Config;
  using Hooks = typename State::Hooks;
  const typename State::Row row = at.reload_row();
  const float sum[2] = {quad_sum(at.softmax.sum[0]), quad_sum(at.softmax.sum[1])};
  const auto lane = at.lane_rows(row);
  decltype(auto) args = args_of_work_tile<Config>(at.args, row);
  if (items_of<Config>(row) > 1) {
    write_packed_partials<Config>(at.args, row, lane, at.output, at.softmax, sum, at.to_log2);
    merge_if_last<Config, Hooks>(args, row, {at.warpgroup, warp_of_warpgroup()});
  } else if (Config::kWritesLse && at.args.attend.lse.data != nullptr) {
    LseArg lse = at.args.attend.lse;
    lse.data += first_result<Config, float>(at.args, row.b, row.q_begin, lse.stride_b, 1);
    lse.stride_b = 0;
    write_lse<Config, Hooks>(args, lse, row.b, lane, at.softmax, sum, at.to_log2,
                             range_log2<Config>());
  }
  __syncwarp();
}

/// O and LSE of an item, which may have had no tile.
template <class State>
__device__ __forceinline__ void write_partials(const State& at) {
  const WorkTile row = at.reload_row();
  const float sum[2] = {quad_sum(at.softmax.sum[0]), quad_sum(at.softmax.sum[1])};
  using Config = typename State::Config;
  write_partial_results<head_dim_v<Config>()>(at.args, row, at.share(),
                                              first_row_of_warp<Config>(row), 0, at.output,
                                              at.softmax, sum, at.to_log2);
}

/// The last of a row's reports.
template <class State>
__device__ __forceinline__ void finish_reports(const State& at) {
  using Config = typename State::Config;
  using Hooks = typename State::Hooks;
  if constexpr (takes_few_queries<Config>()) {
    if (reports(at, at.row)) close_reports_of_heads<Config, Hooks>(at.args, at.reload_row());
  }
  if constexpr (packs_heads<Config>()) return;
  if constexpr (State::Shape::kOwnRows) {
    const typename State::Row row = at.reload_row();
    const bool is_first_warp = uniform_over_warp(static_cast<u32>(warp_of_warpgroup())) == 0;
    if (reports(at, row) && at.args.attend.counts != nullptr && is_first_warp)
      count_visible<Config, Hooks>(args_of_work_tile<Config>(at.args, row), at.args.attend, row,
                                   thread_of_row<Config>());
  } else if (reports(at, at.row)) {
    const typename State::Row row = at.reload_row();
    close_report<Config, Hooks>(args_of_work_tile<Config>(at.args, row), at.args.attend, row);
  }
}

/// Is the item the first of its row's?
template <class State>
__device__ __forceinline__ bool is_first_item(const State& at) {
  if constexpr (has_sequence_tiles<typename State::Config>()) return at.reload_row().share == 0;
  return at.share() == 0;
}

/// What a row leaves besides O, whether it has seen keys or not.
template <class State>
__device__ __forceinline__ void write_rest(const State& at) {
  using Config = typename State::Config;
  if constexpr (SplitKv<Config>::kIsSplit) {
    write_partials(at);
  } else if constexpr (has_sequence_tiles<Config>()) {
    finish_packed(at);
  } else if (Config::kWritesLse && at.args.attend.lse.data != nullptr) {
    write_logarithms(at);
  }
  if (is_first_item(at)) finish_reports(at);
}

}  // namespace lacuna
