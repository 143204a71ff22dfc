// The producer of the wgmma family: one warp walks over the block's work tiles and over the
// tiles of each, and keeps the rings of attend/wgmma/wgmma_shape.cuh full.
#pragma once

#include "args/attend_maps.cuh"
#include "attend/report.cuh"
#include "attend/wgmma/gate_votes.cuh"
#include "attend/wgmma/sequence_loads.cuh"
#include "attend/wgmma/wgmma_shape.cuh"
#include "base/pin.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

/// Brings the queries of a work tile; by one whole warp.
template <class Config, class Args>
__device__ __forceinline__ void load_query_tiles(const Args& args, const WgmmaSmem<Config>& smem,
                                                 RingPosition<Config::kQueryBuffers>& at,
                                                 const typename WgmmaShape<Config>::Row& row) {
  using Shape = WgmmaShape<Config>;
  using Slot = typename Shape::QuerySlot;
  const Mbarrier full = smem.barrier(smem.control()->q_full[at.slot()]);
  smem.barrier(smem.control()->q_empty[at.slot()]).wait(at.phase() ^ 1);
  if constexpr (packs_heads<Config>()) {
    if (elect_one()) load_packed_queries<Config>(args, smem, at.slot(), full, row);
  } else if (elect_one()) {
    const auto policy = l2_policy<L2Policy::kKeepFirst>();
    full.arrive_expecting(Config::kWarpgroups * Slot::kBytes);
    for (int w = 0; w < Config::kWarpgroups; ++w) {
      for (int p = 0; p < Slot::kBoxes; ++p) {
        tma_load(args.maps.q, smem.queries(at.slot(), w) + Slot::offset(0, p), full,
                 Slot::origin(row.q0 + w * kWarpgroupRows, p, row.h, row.b), policy);
      }
    }
  }
  at.advance();
}

template <class Config, class Hooks, class Args>
class WgmmaProducer {
 protected:
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Row = typename Shape::Row;
  using Walk =
      typename Select<packs_heads<Config>(), SequenceWalk<MaskWalk<Config, Hooks, Args>, Args>,
                      typename WorkTileWalk<Config, Hooks, Args>::Type>::Type;

 public:
  static constexpr int kWarps = Shape::kProducerWarps;  ///< that run

  __device__ __forceinline__ WgmmaProducer(const Args& args, const Smem& smem)
      : args_(args), smem_(smem), warp_(kWarps == 1 ? 0 : warp_index() - Shape::kConsumerWarps) {}

  /// By whole warps: one, or several that take the same steps and share the boxes of each.
  __device__ __forceinline__ void run() {
    if constexpr (packs_heads<Config>()) {
      for_each_item();
    } else {
      for_each_row([this](const WorkTile& row, int share) { produce_row(row, share); });
    }
  }

 protected:
  /// The items of all sequences.
  __device__ __forceinline__ void for_each_item() {
    RowCounter counter(args_.schedule.next_row);
    const int items = scheduled_items(args_);
    int item = block_index(), last_b = -1;
    for (int n = 0; item < items; ++n) {
      if (warp_ == 0) counter.ask();
      const SequenceTile row = sequence_tile<Config>(args_, item);
      if (row.b != last_b) acquire_maps<Config>(args_, row.b);
      last_b = row.b;
      produce_row(row, row.share);
      item = next_item(counter, n);
    }
    load_values();
    if (warp_ == 0) announce_end();
  }

  /// The n-th item that is taken; of several warps the first takes it and tells the others. A place
  /// is written again two items on, when all have read it: the barrier of the item between is
  /// behind it.
  __device__ __forceinline__ int next_item(const RowCounter& counter, int n) const {
    if constexpr (kWarps == 1) return counter.take();
    int& place = smem_.control()->items[n % 2];
    if (warp_ == 0) {
      const int item = counter.take();
      if (elect_one()) place = item;
    }
    producer_barrier<Config>().sync();
    return place;
  }

  /// produce_row(row, share) for each work tile, or each item of a split one.
  template <class ProduceRow>
  __device__ __forceinline__ void for_each_row(ProduceRow produce_row) {
    RowCounter counter(args_.schedule.next_row);
    int work_index = block_index();
    while (work_index < scheduled_work_tiles<Config>(args_.attend)) {
      counter.ask();
      produce_row(scheduled_row<Config>(args_.attend, args_.schedule, work_index),
                  share_of_item<Config>(work_index));
      work_index = counter.take();
    }
    if constexpr (!Shape::kLooksAhead) load_values();
    announce_end();
  }

  __device__ __forceinline__ Walk begin_walk(const Args& args, const Row& row, int share) const {
    if constexpr (packs_heads<Config>()) {
      return Walk(args, row);
    } else {
      return WorkTileWalk<Config, Hooks, Args>::begin(args, row, {}, share);
    }
  }

  __device__ __forceinline__ void produce_row(const Row& row, int share) {
    decltype(auto) args = args_of_work_tile<Config>(args_, row);
    note_kv_head(row);
    Walk walk = begin_walk(args, row, share);
    Message step = take_step(args, row, walk);
    next_page_ = page_of(row, step);
    const u32 row_bits = rows_.slot() << Message::kRowShift;
    bool is_first = true;
    do {
      Message next = take_step(args, row, walk);
      page_ = next_page_;
      next_page_ = page_of(row, next);
      step.flags = flags_of(step) | (next.tiles[0].exists() ? 0u : Message::kLastOfRow);
      if constexpr (Shape::kLooksAhead)
        step.flags |= row_bits | (is_first ? Message::kFirstOfRow : 0u);
      load_keys(row, share, step, is_first);
      if constexpr (!Shape::kLooksAhead) load_values();  // of the step before
      if (is_first && step.tiles[0].exists()) {
        if (warp_ == 0) {
          load_query_tiles<Config>(args_, smem_, queries_, row);
        } else {
          queries_.advance();
        }
      }
      is_first = false;
      if constexpr (!Shape::kLooksAhead) note_pending(row, step);
      step = next;
    } while (step.tiles[0].exists());
  }

  /// Pinned, because the compiler divides where the head is used otherwise: once a step, between a
  /// free slot and its load.
  __device__ __forceinline__ void note_kv_head(const WorkTile& row) {
    kv_head_ = row.h / args_.attend.heads_per_kv;
    pin(kv_head_);
  }

  __device__ __forceinline__ int page_of(const Row& row, const Message& step) const {
    if constexpr (packs_heads<Config>()) return page_of_lane<Config>(args_, row, step);
    return 0;
  }

  __device__ __forceinline__ Message take_step(const Args& args, const Row& row, Walk& walk) const {
    Message step;
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n) step.tiles[n] = walk.next(args, row);
    return step;
  }

  __device__ __forceinline__ u32 flags_of(const Message& step) const {
    bool needs_mask_or_report = wants_report(args_.attend);
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n)
      needs_mask_or_report =
          needs_mask_or_report || !step.tiles[n].exists() || step.tiles[n].needs_mask();
    return needs_mask_or_report ? Message::kNeedsMaskOrReport : 0u;
  }

  __device__ __forceinline__ void load_keys(const Row& row, int share, const Message& step,
                                            bool is_first) {
    const Mbarrier full = Smem::barrier(smem_.control()->k_full[keys_.slot()]);
    if constexpr (packs_heads<Config>()) {
      if (fills_slot<typename Shape::KeySlot, Config>(args_, step, warp_)) {
        await_slot();
        announce_step(row, share, step, is_first);
        load_sequence_step<typename Shape::KeySlot, Config>(
            args_, keys_of_sequence<Config>(args_, row.b, kv_head_), step, page_, row.n_k,
            smem_.keys(keys_.slot()), full, warp_);
      }
    } else {
      await_slot();
      if (elect_one()) {
        if (is_first) note_row(row, share);
        smem_.message(keys_.slot(), 0) = step;
        load_step<typename Shape::KeySlot>(args_.maps.k, smem_.keys(keys_.slot()), full, step,
                                           kv_head_, row.b);
      }
    }
    if (is_first) rows_.advance();
    keys_.advance();
  }

  /// Of several warps that load, the first has the word.
  __device__ __forceinline__ void announce_step(const Row& row, int share, const Message& step,
                                                bool is_first) const {
    if (warp_ != 0) return;
    if (elect_one()) {
      if (is_first) note_row(row, share);
      smem_.message(keys_.slot(), 0) = step;
    }
    __syncwarp();
  }

  /// What comes next, for the consumers; by one thread.
  __device__ __forceinline__ void note_row(const Row& row, int share) const {
    smem_.control()->rows[rows_.slot()] = row;
    if constexpr (SplitKv<Config>::kIsSplit) smem_.control()->shares[rows_.slot()] = share;
  }

  __device__ __forceinline__ void announce_end() const {
    await_slot();
    if (elect_one()) {
      for (int r = 0; r < Config::kWorkTiles; ++r)
        smem_.message(keys_.slot(), r).flags = Message::kEnd;
      Smem::barrier(smem_.control()->k_full[keys_.slot()]).arrive();
    }
  }

  /// Nobody reads what the slot of keys and the message of its step held.
  __device__ __forceinline__ void await_slot() const {
    Smem::barrier(smem_.control()->k_empty[keys_.slot()]).wait(keys_.phase() ^ 1);
    if constexpr (Shape::kLooksAhead)
      Smem::barrier(smem_.control()->noted[keys_.slot()]).wait(keys_.phase() ^ 1);
  }

  __device__ __forceinline__ void note_pending(const Row& row, const Message& step) {
    pending_ = step;
    has_pending_ = true;
    pending_head_ = kv_head_;
    pending_batch_ = row.b;
    if constexpr (packs_heads<Config>()) pending_n_k_ = row.n_k, pending_page_ = page_;
  }

  /// V of the step whose K was loaded before the last.
  __device__ __forceinline__ void load_values() {
    if (!has_pending_) return;
    const Mbarrier full = Smem::barrier(smem_.control()->v_full[values_.slot()]);
    const Mbarrier empty = Smem::barrier(smem_.control()->v_empty[values_.slot()]);
    if constexpr (packs_heads<Config>()) {
      if (fills_slot<typename Shape::ValueSlot, Config>(args_, pending_, warp_)) {
        empty.wait(values_.phase() ^ 1);
        load_sequence_step<typename Shape::ValueSlot, Config>(
            args_, values_of_sequence<Config>(args_, pending_batch_, pending_head_), pending_,
            pending_page_, pending_n_k_, smem_.values(values_.slot()), full, warp_);
      }
    } else {
      empty.wait(values_.phase() ^ 1);
      if (elect_one()) {
        load_step<typename Shape::ValueSlot>(args_.maps.v, smem_.values(values_.slot()), full,
                                             pending_, pending_head_, pending_batch_);
      }
    }
    values_.advance();
    has_pending_ = false;
  }

  static constexpr u32 kAllTiles = (1u << Shape::kStepTiles) - 1;

  /// The `wanted` tiles of a step, a bit each. One that is missing is filled with zeros, from
  /// behind the last tile; a step without any is only announced.
  template <class Slot>
  __device__ __forceinline__ void load_step(const TensorMap& map, u32 slot, Mbarrier full,
                                            const Message& step, int head, int batch,
                                            u32 wanted = kAllTiles) const {
    if (!step.tiles[0].exists()) {
      full.arrive();
      return;
    }
    const auto policy = l2_policy<L2Policy::kKeepLast>();
    full.arrive_expecting(Slot::kBytes / Shape::kStepTiles * __popc(wanted));
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n) {
      if ((wanted >> n & 1) == 0) continue;
      const TileRef tile = step.tiles[n];
      const int token = (tile.exists() ? tile.index() : args_.attend.k_tiles) * Config::kTileK;
#pragma unroll
      for (int p = 0; p < Slot::kBoxes; ++p) {
        tma_load(map, slot + Slot::offset(n, p), full, Slot::origin(token, p, head, batch), policy);
      }
    }
  }

  const Args& args_;
  const Smem smem_;
  const int warp_;  ///< of those that load
  RingPosition<Config::kQueryBuffers> queries_;
  RingPosition<Config::kStages> keys_;
  RingPosition<Config::kValueStages> values_;
  RingPosition<Shape::kRowSlots> rows_;
  Message pending_;  ///< whose V is still to be loaded
  bool has_pending_ = false;
  int kv_head_ = 0;  ///< of the row
  int pending_head_ = 0, pending_batch_ = 0;
  /// Of sequences: the lane's page of the step that comes next, of this one, and of the values that
  /// are still to be loaded.
  int next_page_ = 0, page_ = 0, pending_page_ = 0, pending_n_k_ = 0;
};

}  // namespace lacuna
