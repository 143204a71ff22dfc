// What a consumer warpgroup of the wgmma family does around its products, whatever the operands:
// work tiles as they come, places in the rings, the gate, results and reports.
#pragma once

#include "attend/epilogue.cuh"
#include "attend/partial_results.cuh"
#include "attend/report.cuh"
#include "attend/wgmma/gate_question.cuh"
#include "attend/wgmma/gate_votes.cuh"
#include "attend/wgmma/lazy_max.cuh"
#include "attend/wgmma/packed_results.cuh"
#include "attend/wgmma/step_votes.cuh"
#include "attend/wgmma/wgmma_epilogue.cuh"
#include "base/kinds.cuh"
#include "base/pin.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ConsumerBase {
 protected:
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Element = typename Config::Element;
  using Row = typename Shape::Row;
  using Ring = RingPosition<Config::kStages>;

  __device__ __forceinline__ ConsumerBase(const Args& args, const Smem& smem, int warpgroup)
      : args_(args),
        smem_(smem),
        warpgroup_(warpgroup),
        gate_(*smem.control(), warpgroup),
        votes_(*smem.control(), warpgroup) {
    to_log2_ = unit() * kLog2E;
  }

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
      if (!packs_heads<Config>() && share() == 0) write_visible();
      rows_.advance();
    }
    finish_store();
  }

  /// The last of a row's reports.
  __device__ __forceinline__ void write_visible() const {
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
    if (!packs_heads<Config>() && reports(row_)) {
      if constexpr (Config::kGathers) {
        report_gathered<kWarpgroupThreads, Config>(args_, row_);
      } else if constexpr (Shape::kOwnRows) {
        open_report<Config, kWarpgroupThreads>(args_.attend, row_, thread_of_row());
        warpgroup_barrier(warpgroup_).sync();
      } else {
        open_report<Config, kWarpgroupThreads>(args_.attend, row_);
        warpgroup_barrier(0).sync();
      }
    }
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

  /// Queries that nothing is multiplied with.
  __device__ __forceinline__ void pass_queries() {
    finish_store();
    await(smem_.control()->q_full, queries_);
    release_queries();
  }

  /// Each warp for itself, when none of its lanes reads them any more.
  __device__ __forceinline__ void release_queries() {
    if (lane_index() == 0) Smem::barrier(smem_.control()->q_empty[queries_.slot()]).arrive();
    queries_.advance();
  }

  __device__ __forceinline__ Message receive() {
    await(smem_.control()->k_full, keys_);
    return smem_.message(keys_.slot(), warpgroup_);
  }

  template <int kSlots>
  __device__ __forceinline__ void await(const unsigned long long (&full)[kSlots],
                                        const RingPosition<kSlots>& at) const {
    Smem::barrier(full[at.slot()]).wait(at.phase());
  }

  /// Each warp for itself, after its reads of the slot and of the step's message: those of all
  /// lanes, for whom one arrives.
  __device__ __forceinline__ void release_keys() {
    __syncwarp();
    if (lane_index() == 0) Smem::barrier(smem_.control()->k_empty[keys_.slot()]).arrive();
    keys_.advance();
  }
  __device__ __forceinline__ void release_values(const Ring& at) const {
    if (lane_index() == 0) Smem::barrier(smem_.control()->v_empty[at.slot()]).arrive();
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

  /// The queries' place is the producer's again once the copy engine has read O from it. With a
  /// second place that is not asked at the end of the row, but when the next one is under way.
  __device__ __forceinline__ void finish_store() {
    if (!has_stored_) return;
    if (elect_one()) {  // the same thread that stored
      tma_store_wait_read();
      Smem::barrier(smem_.control()->q_empty[queries_.before().slot()]).arrive();
    }
    has_stored_ = false;
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
    take_sinks<Config, Hooks>(denominators, args_of<Config>(args_, row), row.b, lane_rows(row),
                              softmax_, to_log2_, range_log2());
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
    decltype(auto) args = args_of<Config>(args_, row);
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

  /// Does this warpgroup write the reports of its row?
  __device__ __forceinline__ bool reports(const WorkTile& row) const {
    return wants_report(args_.attend) && (Shape::kOwnRows ? row.i < row.q_tiles : warpgroup_ == 0);
  }

  /// Of a visited tile, or of none: gated by all warpgroups whose row it is? One without a query
  /// row agrees. The barrier stands in no condition that the compiler takes for divergent.
  __device__ __forceinline__ void report(TileRef tile, bool gated) const {
    if constexpr (Config::kGateScope == GateScope::kWarpgroup && !Shape::kOwnRows) {
      const bool has_rows = row_.q0 + warpgroup_ * kWarpgroupRows <= row_.q1;
      gated = consumer_barrier<Config>().sync_all(gated || !has_rows);
    }
    if (tile.exists() && thread_of_row() == 0)
      write_visit<Config>(args_.attend, reload_row(), tile.index(), gated);
  }

  __device__ __forceinline__ TileKeys<Config> tile_keys() const {
    return TileKeys<Config>(smem_.control()->ring);
  }

  /// For what is seldom done: the loop over steps keeps no registers for it.
  __device__ __forceinline__ Row reload_row() const {
    u32 slot = rows_.slot();
    pin(slot);
    Row row = smem_.control()->rows[slot];
    if constexpr (Shape::kOwnRows) {
      row.i += warpgroup_;
      row.q0 += warpgroup_ * Config::kTileQ;
      row.q1 = smaller(row.q0 + Config::kTileQ - 1, args_.attend.n_q - 1);
    }
    return row;
  }

  /// Which of its row's shares this is.
  __device__ __forceinline__ int share() const {
    if constexpr (SplitKv<Config>::kIsSplit) return smem_.control()->shares[rows_.slot()];
    return 0;
  }

  /// First query token of this warp.
  __device__ __forceinline__ int first_row(const WorkTile& row) const {
    return row.q0 + thread_of_row() / 32 * kWarpRows;
  }

  /// Queries of a lane's accumulators.
  __device__ __forceinline__ auto lane_rows(const Row& row) const {
    if constexpr (packs_heads<Config>()) {
      return packed_rows(args_, row, warpgroup_, warp() * kWarpRows + lane_index() / 4);
    } else {
      return LaneRows{first_row(row) + lane_index() / 4, row.h};
    }
  }
  __device__ __forceinline__ PackedWarp packed_warp() const { return {warpgroup_, warp()}; }

  /// Scores -> natural units.
  __device__ __forceinline__ float unit() const {
    return Config::kHasScore ? 1.0f : args_.attend.scale;
  }

  /// Weights are times 2 to this.
  __device__ __forceinline__ static float range_log2() {
    return Shape::kHasE4m3Values ? kLog2E4m3Range : 0.0f;
  }

  /// Among the warpgroups that share its work tile.
  __device__ __forceinline__ static int thread_of_row() {
    return Shape::kOwnRows ? thread_index() % kWarpgroupThreads : thread_index();
  }

  /// Of the warpgroup; worked out where it is wanted.
  __device__ __forceinline__ static int warp() {
    return static_cast<int>(static_cast<u32>(thread_index()) / 32 % 4);
  }

  const Args& args_;
  const Smem smem_;
  const int warpgroup_;
  float to_log2_;                        ///< scores -> log2 domain
  RingPosition<Shape::kRowSlots> rows_;  ///< of row_
  bool has_stored_ = false;              ///< O is on its way from the place of the queries before
  bool is_fresh_;                        ///< no tile of a row of its own has been asked about
  Row row_;
  RingPosition<Config::kQueryBuffers> queries_;
  Ring keys_;  ///< of the step under way; its values' position is the same, a step later
  typename Hooks::GateRow gate_row_;  ///< of row_, what the gate compares with
  WgmmaGate<Config> gate_;
  StepVotes<Config> votes_;
  bool has_weights_[Shape::kGroups];  ///< of the step whose product with V is due
  LazyMax softmax_;
  float output_[Shape::kColumnBlocks][4];
};

}  // namespace lacuna
