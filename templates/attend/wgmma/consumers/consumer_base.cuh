// What a consumer warpgroup of the wgmma family does around its products, whatever the operands:
// work tiles as they come, places in the rings, the gate, results and reports.
#pragma once

#include "attend/epilogue.cuh"
#include "attend/partial_results.cuh"
#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/gates/gate_question.cuh"
#include "attend/wgmma/results/packed_results.cuh"
#include "attend/wgmma/results/wgmma_epilogue.cuh"
#include "attend/wgmma/results/wgmma_report.cuh"
#include "base/kinds.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ConsumerBase : protected ConsumerState<Config, Hooks, Args> {
 protected:
  using State = ConsumerState<Config, Hooks, Args>;
  using State::args_, State::gate_, State::gate_row_, State::has_stored_, State::has_weights_;
  using State::await, State::finish_store, State::pass_queries, State::receive;
  using State::first_row, State::lane_rows, State::packed_warp, State::reload_row, State::share;
  using State::is_fresh_, State::keys_, State::output_, State::queries_, State::row_, State::rows_;
  using State::range_log2, State::thread_of_row, State::unit, State::warp;
  using State::release_keys, State::release_queries, State::release_values;
  using State::smem_, State::softmax_, State::to_log2_, State::votes_, State::warpgroup_;
  using typename State::Element;
  using typename State::Message;
  using typename State::Ring;
  using typename State::Row;
  using typename State::Shape;
  using typename State::Smem;

  __device__ __forceinline__ ConsumerBase(const Args& args, const Smem& smem, int warpgroup)
      : State(args, smem, warpgroup) {}

  /// attend_row(first step) for each row with tiles; it leaves output_ and softmax_. The first step
  /// of a block is not that of a warpgroup with a row of its own.
  template <class AttendRow>
  __device__ __forceinline__ void for_each_row(AttendRow attend_row) {
    for (Message first = receive(); !first.has(Message::kEnd); first = receive()) {
      row_ = reload_row();
      begin_row();
      if (takes_part(first)) {
        attend_row(first);
        write_results();
      } else {
        pass_over();
        // Reconverge; otherwise the compiler assumes divergence and adds WARPSYNCs.
        __syncwarp();
      }
      if constexpr (SplitKv<Config>::kIsSplit) {
        write_partials();
      } else if constexpr (packs_heads<Config>()) {
        finish_packed();
      } else if (Config::kWritesLse && args_.attend.lse.data != nullptr) {
        write_logarithms();
      }
      if (share() == 0) write_visible();
      rows_.advance();
    }
    finish_store();
  }

  /// The last of a row's reports.
  __device__ __forceinline__ void write_visible() const {
    if constexpr (packs_heads<Config>()) return;
    if constexpr (Shape::kOwnRows) {
      const WorkTile row = reload_row();
      const bool is_first_warp = uniform_over_warp(static_cast<u32>(warp())) == 0;
      if (reports(row) && args_.attend.counts != nullptr && is_first_warp)
        count_visible<Config, Hooks>(args_, row, thread_of_row());
    } else if (reports(row_)) {
      close_report<Config, Hooks>(args_, reload_row());
    }
  }

  __device__ __forceinline__ void begin_row() {
    softmax_ = {};
    if constexpr (Shape::kHasGate && !Shape::kLooksAhead)
      gate_row_ = Hooks::gate_row(args_, row_.i, row_.q0, row_.q1, row_.h, row_.b);
    gate_.begin_row(row_.q1 - first_row(row_));
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output_[n][i] = 0.0f;
    }
    if (reports(row_)) open_reports<Config>(args_, row_, warpgroup_);
    is_fresh_ = true;
  }

  /// Does the row have a tile at all? Steps before its first, or all, are passed on.
  __device__ __forceinline__ bool takes_part(Message& first) {
    if constexpr (Shape::kOwnRows) {
      return !first.has(Message::kSkipped) || passes_on(first);
    } else {
      return first.tiles[0].exists();
    }
  }

  /// Of a block of several rows: passes on the step just received, and those behind it that have no
  /// tile of this row either. True: `step` is one that has. No product may be under way.
  __device__ __forceinline__ bool passes_on(Message& step) {
    while (step.has(Message::kSkipped)) {
      const bool is_last = step.has(Message::kLastOfRow);
      release_keys();
      const Ring values = keys_.before();
      if (!is_last) step = receive();
      await(smem_.control()->v_full, values);
      release_values(values);
      if (is_last) return false;
    }
    return true;
  }

  /// attend_run(step) for each run of steps that have tiles of this row; it leaves `step` at the
  /// row's last, or at one that is passed on.
  template <class AttendRun>
  __device__ __forceinline__ void for_each_run(Message& step, AttendRun attend_run) {
    if constexpr (Shape::kOwnRows) {
      do attend_run(step);
      while (step.has(Message::kSkipped) && passes_on(step));
    } else {
      attend_run(step);
    }
  }

  /// A work tile that sees nothing: O is 0; that of an item, as output_ is.
  __device__ __forceinline__ void pass_over() {
    if constexpr (Shape::kOwnRows) {
      pass_queries();
    } else {
      release_keys();
      if constexpr (Shape::kLooksAhead) {
        if (lane_index() == 0)
          Smem::barrier(smem_.control()->polled[keys_.before().slot()]).arrive();
      } else {
        await(smem_.control()->v_full, keys_.before());
        release_values(keys_.before());
      }
    }
    if constexpr (packs_heads<Config>()) {
      const Row row = reload_row();
      if (items_of(row) == 1)
        store_packed_rows<Config>(args_, row, packed_warp(),
                                  [](int, int) { return make_uint4(0, 0, 0, 0); });
    } else if constexpr (!SplitKv<Config>::kIsSplit) {
      write_zeros();
    }
  }

  __device__ __forceinline__ void write_zeros() const {
    const WorkTile row = Shape::kOwnRows ? reload_row() : row_;
    const TensorArg& o = args_.attend.o;
    Element* head = static_cast<Element*>(o.data) + row.b * o.stride_b + row.h * o.stride_h;
    constexpr int kChunks = Shape::kHeadDimV / 8;
    constexpr int kThreads = Shape::kConsumerThreads / Config::kWorkTiles;
    for (int n = thread_of_row(); n < Config::kTileQ * kChunks; n += kThreads) {
      const int q = row.q0 + n / kChunks;
      if (q > row.q1) break;
      *reinterpret_cast<uint4*>(head + q * o.stride_n + n % kChunks * 8) = {0, 0, 0, 0};
    }
  }

  /// Asks the gate about group g, which is a tile. False: it is left out of the softmax.
  /// `maxima`: of rows, or of each lane's part of them.
  template <bool kFirst>
  __device__ __forceinline__ bool counts(int g, TileRef tile, const float (&maxima)[2]) {
    const bool decides = tile.exists() && !is_first<kFirst>(g, tile);
    const bool gated = decides && decide(tile, maxima);
    note(g, tile, gated);
    return !(Config::kSkipsExp && gated);
  }

  /// What was decided about group g, which may be no tile.
  __device__ __forceinline__ void note(int g, TileRef tile, bool gated) {
    has_weights_[g] = tile.exists() && !(Config::kSkipsPv && gated);
    if (__builtin_expect(wants_report(args_.attend), false)) report(tile, gated);
  }

  /// Is group g the first tile of its row? That one always counts. Asked once for each tile;
  /// kFirst: it is of the first step, or of the first after one that was passed on.
  template <bool kFirst>
  __device__ __forceinline__ bool is_first(int g, TileRef tile) {
    if constexpr (Shape::kOwnRows) {
      const bool first = kFirst && is_fresh_ && tile.exists();
      if (first) is_fresh_ = false;
      return first;
    } else {
      return kFirst && g == 0;
    }
  }

  __device__ __forceinline__ bool decide(TileRef tile, const float (&maxima)[2]) {
    const WorkTile row = reload_row();  // no registers are left to keep it
    if constexpr (Shape::kWarpsKnow) {
      GateStatistics lane = gate_.of_lane(maxima);
      lane.tile_max *= unit();
      lane.gap *= unit();
      const bool opens = !gate_skips<Config, Hooks>(args_, row, gate_row_, tile.index(), lane);
      const bool counts = __any_sync(kAllLanes, opens);
      votes_.publish(counts);
      return !counts && votes_.collect() == 0;
    } else {
      gate_.publish(warp(), gate_.statistics(maxima, unit()));
      return skips(row, tile, gate_.collect());
    }
  }

  /// The same in all lanes; of a tile that is missing, anything.
  __device__ __forceinline__ bool skips(const WorkTile& row, TileRef tile,
                                        const GateStatistics& statistics) const {
    const int j = tile.exists() ? tile.index() : 0;
    return __any_sync(kAllLanes, gate_skips<Config, Hooks>(args_, row, gate_row_, j, statistics));
  }

  /// O through the queries' place, which is then the producer's again; that of an item of a split
  /// row goes another way.
  __device__ __forceinline__ void write_results() {
    using Tile = typename Shape::OutputTile;
    const Row row = reload_row();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    const u32 staging = smem_.queries(queries_.slot(), warpgroup_);
    if constexpr (Shape::kHasE4m3Values) {
      const int heads_per_kv = args_.attend.heads_per_kv;
      const int head_kv = row.b * (row.n_h / heads_per_kv) + row.h / heads_per_kv;
      scale_channels(output_, args_.predict.v_scale + head_kv * Config::kHeadDim);
    }
    if constexpr (SplitKv<Config>::kIsSplit) {
      __syncwarp();
      release_queries();
    } else if constexpr (packs_heads<Config>()) {
      if (items_of(row) == 1) write_packed_rows(row, sum, staging);
      __syncwarp();
      release_queries();
    } else {
      float denominators[2] = {sum[0], sum[1]};
      take_sinks<Config, Hooks>(denominators, args_, row.b, lane_rows(row), softmax_, to_log2_,
                                range_log2());
      stage_output<Element, Tile>(staging, warp(), output_, denominators);
      store_output<Tile>(args_.maps.o, staging, warp(), first_row(row), row);
      queries_.advance();
      has_stored_ = true;
      if constexpr (Config::kQueryBuffers == 1) finish_store();
    }
  }

  __device__ __forceinline__ void write_logarithms() const {
    const WorkTile row = reload_row();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    write_lse<Config, Hooks>(args_, args_.attend.lse, row.b, lane_rows(row), softmax_, sum,
                             to_log2_, range_log2());
  }

  /// O through the queries' place, which the copy engine does not read.
  __device__ __forceinline__ void write_packed_rows(const Row& row, const float (&sum)[2],
                                                    u32 staging) {
    using Tile = typename Shape::OutputTile;
    float denominators[2] = {sum[0], sum[1]};
    take_sinks<Config, Hooks>(denominators, args_of_work_tile<Config>(args_, row), row.b,
                              lane_rows(row), softmax_, to_log2_, range_log2());
    stage_output<Element, Tile>(staging, warp(), output_, denominators);
    __syncwarp();
    const unsigned char* own = smem_.dynamic + (staging - smem_.tiles());
    store_packed_rows<Config>(args_, row, packed_warp(), [&](int place, int chunk) {
      const u32 at = Tile::offset(warp() * kWarpRows + place, chunk);
      return *reinterpret_cast<const uint4*>(own + at);
    });
    fence_proxy_async();
  }

  /// LSE of a whole work tile; of an item its partial results, and the merge if it is the last.
  __device__ __forceinline__ void finish_packed() const {
    const Row row = reload_row();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    const auto lane = lane_rows(row);
    decltype(auto) args = args_of_work_tile<Config>(args_, row);
    if (items_of(row) > 1) {
      write_packed_partials(args_, row, lane, output_, softmax_, sum, to_log2_);
      merge_if_last<Config, Hooks>(args, row, packed_warp());
    } else if (Config::kWritesLse && args_.attend.lse.data != nullptr) {
      LseArg lse = args_.attend.lse;
      lse.data += row.q_begin;
      lse.stride_b = 0;
      write_lse<Config, Hooks>(args, lse, row.b, lane, softmax_, sum, to_log2_, range_log2());
    }
    __syncwarp();
  }

  /// O and LSE of an item, which may have had no tile.
  __device__ __forceinline__ void write_partials() const {
    const WorkTile row = reload_row();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    write_partial_results(args_, row, share(), first_row(row), output_, softmax_, sum, to_log2_);
  }

  __device__ __forceinline__ void report_step(const Message& step) const {
    if (!wants_report(args_.attend)) return;
#pragma unroll
    for (int t = 0; t < Shape::kStepTiles; ++t) {
      if (step.tiles[t].exists()) report(step.tiles[t], false);
    }
  }

  __device__ __forceinline__ bool reports(const WorkTile& row) const {
    return writes_reports<Config>(args_.attend, row, warpgroup_);
  }

  /// Of a visited tile, or of none; by all warpgroups of the row.
  __device__ __forceinline__ void report(TileRef tile, bool gated) const {
    gated = gated_by_all<Config>(row_, warpgroup_, gated);
    if (tile.exists() && thread_of_row() == 0)
      write_visit<Config>(args_.attend, reload_row(), tile.index(), gated);
  }
};

}  // namespace lacuna
