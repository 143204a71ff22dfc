// What a consumer warpgroup of the wgmma family does around its products, whatever the operands:
// rows of tiles as they come, places in the rings, the gate, results and reports.
#pragma once

#include "base/kinds.cuh"
#include "base/pin.cuh"
#include "kernel/epilogue.cuh"
#include "kernel/report.cuh"
#include "kernel/row_schedule.cuh"
#include "kernel/wgmma_epilogue.cuh"
#include "kernel/wgmma_gate.cuh"
#include "kernel/wgmma_softmax.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class WgmmaRows {
 protected:
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Element = typename Config::Element;
  using Ring = RingPosition<Config::kStages>;

  __device__ __forceinline__ WgmmaRows(const Args& args, const Smem& smem, int warpgroup)
      : args_(args), smem_(smem), warpgroup_(warpgroup), gate_(*smem.control(), warpgroup) {
    to_log2_ = unit() * kLog2E;
  }

  /// attend_row(first step) for each row with tiles; it leaves output_ and softmax_.
  template <class AttendRow>
  __device__ __forceinline__ void for_each_row(AttendRow attend_row) {
    for (Message first = receive(); !first.has(Message::kEnd); first = receive()) {
      row_ = located_anew();
      begin_row();
      if (first.tiles[0].exists()) {
        attend_row(first);
        write_results();
      } else {
        pass_over();
      }
      if (Config::kWritesLse && args_.attend.lse.data != nullptr) write_logarithms();
      if (wants_report(args_.attend) && warpgroup_ == 0)
        close_report<Config, Hooks>(args_, located_anew());
      rows_.advance();
    }
    finish_store();
  }

  __device__ __forceinline__ void begin_row() {
    softmax_ = {};
    gate_.begin_row();
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output_[n][i] = 0.0f;
    }
    if (wants_report(args_.attend) && warpgroup_ == 0) {
      if constexpr (Config::kGathers) {
        report_gathered<kWarpgroupThreads, Config>(args_, row_);
      } else {
        open_report<kWarpgroupThreads>(args_.attend, row_);
        warpgroup_barrier(0).sync();
      }
    }
  }

  /// A row of tiles that sees nothing: O is 0.
  __device__ __forceinline__ void pass_over() {
    release_keys();
    await(smem_.control()->v_full, keys_.before());
    release_values(keys_.before());
    const TensorArg& o = args_.attend.o;
    Element* head = static_cast<Element*>(o.data) + row_.b * o.stride_b + row_.h * o.stride_h;
    constexpr int kChunks = Config::kHeadDim / 8;
    for (int n = thread_index(); n < Config::kTileQ * kChunks; n += Shape::kConsumerThreads) {
      const int q = row_.q0 + n / kChunks;
      if (q > row_.q1) break;
      *reinterpret_cast<uint4*>(head + q * o.stride_n + n % kChunks * 8) = {0, 0, 0, 0};
    }
  }

  __device__ __forceinline__ Message receive() {
    await(smem_.control()->k_full, keys_);
    return smem_.control()->messages[keys_.slot()];
  }

  template <int kSlots>
  __device__ __forceinline__ void await(const unsigned long long (&full)[kSlots],
                                        const RingPosition<kSlots>& at) const {
    Smem::barrier(full[at.slot()]).wait(at.phase());
    if constexpr (Shape::kHasCopiedRows) fence_proxy_async();
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
  template <bool kFirst>
  __device__ __forceinline__ bool counts(int g, TileRef tile, const float (&group_max)[2]) {
    const bool decides = tile.exists() && !(kFirst && g == 0);
    const bool gated = decides && decide(tile, group_max);
    has_weights_[g] = tile.exists() && !(Config::kSkipsPv && gated);
    if (__builtin_expect(wants_report(args_.attend) && tile.exists(), false)) report(tile, gated);
    if (Config::kSkipsExp && gated) return false;
    gate_.raise(group_max);
    return true;
  }

  __device__ __forceinline__ bool decide(TileRef tile, const float (&tile_max)[2]) {
    const TileRow row = located_anew();  // a loop with a gate has no registers left for it
    gate_.publish(warp(),
                  warp_statistics(tile_max, gate_.running_max(), row.q1 - first_row(row), unit()));
    return skips(row, tile, gate_.collect());
  }

  __device__ __forceinline__ bool skips(const TileRow& row, TileRef tile,
                                        const GateStatistics& statistics) const {
    const int k0 = tile.index() * Config::kTileK;
    const int k1 = smaller(k0 + Config::kTileK - 1, args_.attend.n_k - 1);
    const bool skip = Hooks::gate_skip(args_, statistics.tile_max, statistics.gap, row.i,
                                       tile.index(), row.q0, row.q1, k0, k1, row.h, row.b);
    return __any_sync(kAllLanes, skip);
  }

  /// O through the queries' place, which is then the producer's again.
  __device__ __forceinline__ void write_results() {
    using Tile = typename Shape::QueryTile;
    const TileRow row = located_anew();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    const u32 staging = smem_.queries(queries_.slot(), warpgroup_);
    if constexpr (Shape::kHasE4m3Values) {
      const int heads_per_kv = args_.attend.heads_per_kv;
      const int head_kv = row.b * (row.n_h / heads_per_kv) + row.h / heads_per_kv;
      scale_channels(output_, args_.predict.v_scale + head_kv * Config::kHeadDim);
    }
    stage_output<Element, Tile>(staging, warp(), output_, sum);
    store_output<Tile>(args_.maps.o, staging, warp(), first_row(row), row);
    queries_.advance();
    has_stored_ = true;
    if constexpr (Config::kQueryBuffers == 1) finish_store();
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
    const TileRow row = located_anew();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    write_lse(args_.attend.lse, row.b, row.h, first_row(row), args_.attend.n_q, softmax_, sum,
              to_log2_, Shape::kHasE4m3Values ? kLog2E4m3Range : 0.0f);
  }

  __device__ __forceinline__ void report_step(const Message& step) const {
    if (!wants_report(args_.attend)) return;
#pragma unroll
    for (int t = 0; t < Shape::kStepTiles; ++t) {
      if (step.tiles[t].exists()) report(step.tiles[t], false);
    }
  }

  /// Of a visited tile: gated by all warpgroups? One without a query row agrees.
  __device__ __forceinline__ void report(TileRef tile, bool gated) const {
    if constexpr (Config::kGateScope == GateScope::kWarpgroup) {
      const bool has_rows = row_.q0 + warpgroup_ * kWarpgroupRows <= row_.q1;
      gated = consumer_barrier<Config>().sync_all(gated || !has_rows);
    }
    if (thread_index() == 0) write_visit(args_.attend, located_anew(), tile.index(), gated);
  }

  __device__ __forceinline__ TileKeys<Config> tile_keys() const {
    return TileKeys<Config>(smem_.control()->ring);
  }

  /// For what is seldom done: the loop over steps keeps no registers for it.
  __device__ __forceinline__ TileRow located_anew() const {
    u32 slot = rows_.slot();
    pin(slot);
    return smem_.control()->rows[slot];
  }

  /// First query token of this warp.
  __device__ __forceinline__ int first_row(const TileRow& row) const {
    return row.q0 + thread_index() / 32 * kWarpRows;
  }

  /// Scores -> natural units.
  __device__ __forceinline__ float unit() const {
    return Config::kHasScore ? 1.0f : args_.attend.scale;
  }

  /// Of the warpgroup; worked out where it is wanted.
  __device__ __forceinline__ static int warp() { return thread_index() / 32 % 4; }

  const Args& args_;
  const Smem smem_;
  const int warpgroup_;
  float to_log2_;                        ///< scores -> log2 domain
  RingPosition<Shape::kRowSlots> rows_;  ///< of row_
  bool has_stored_ = false;              ///< O is on its way from the place of the queries before
  TileRow row_;
  RingPosition<Config::kQueryBuffers> queries_;
  Ring keys_;  ///< of the step under way; its values' position is the same, a step later
  WgmmaGate<Config> gate_;
  bool has_weights_[Shape::kGroups];  ///< of the step whose product with V is due
  ReferenceRows softmax_;
  float output_[Shape::kColumnBlocks][4];
};

}  // namespace lacuna
