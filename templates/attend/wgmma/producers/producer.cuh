// The producer of the wgmma family: one warp walks over the block's work tiles and over the
// tiles of each, and keeps the rings of attend/wgmma/layout/wgmma_shape.cuh full.
#pragma once

#include "args/attend_maps.cuh"
#include "attend/report.cuh"
#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "attend/wgmma/producers/sequence_loads.cuh"
#include "base/pin.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

/// Brings the queries of a work tile; by one whole warp.
template <class Config, class Args, class Row>
__device__ __forceinline__ void load_query_tiles(const Args& args, const WgmmaSmem<Config>& smem,
                                                 RingPosition<Config::kQueryBuffers>& at,
                                                 const Row& row) {
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
    if constexpr (packs_heads<Config>() || !kHasCheapMask<Config, Hooks>) {
      produce_items();
    } else if (block_index() < work_indices()) {
      produce_rows();
    }
    if constexpr (!Shape::kLooksAhead) load_values();
    if (warp_ == 0) announce_end();
  }

 protected:
  /// What loads have to know of the row whose steps they bring.
  struct Place {
    int q0 = 0, h = 0, b = -1, n_k = 0;
  };

  /// All rows of the block, step by step. While the last step of a row still waits for its places,
  /// the next row is looked up: what that takes would otherwise pass between the last keys and the
  /// last values of a row, which consumers wait for.
  __device__ __forceinline__ void produce_rows() {
    RowCounter counter(args_.schedule.next_row);
    counter.ask();
    int work_index = block_index();
    Row row = find_row(work_index);
    Walk walk = begin_walk(row, work_index);
    Message step = take_step(row, walk);
    while (work_index < work_indices()) {
      begin_row(row, work_index);
      bool is_first = true;
      // A loop of its own, in which the row does not change: it stays in uniform registers.
      Message next = take_step(row, walk);
      for (; next.tiles[0].exists(); next = take_step(row, walk)) {
        load_step_of_row(step, is_first, false);
        is_first = false;
        step = next;
      }
      work_index = next_index(counter);
      if (work_index < work_indices()) {
        row = find_row(work_index);
        walk = begin_walk(row, work_index);
        next = take_step(row, walk);
      }
      load_step_of_row(step, is_first, true);
      step = next;
    }
  }

  /// Rows, or the items of all sequences, one after the other: what looks ahead takes registers
  /// that other masks need, and the loads of sequences.
  __device__ __forceinline__ void produce_items() {
    RowCounter counter(args_.schedule.next_row);
    if (warp_ == 0) counter.ask();
    for (int item = block_index(); item < work_indices(); item = next_index(counter))
      produce_item(find_row(item), item);
  }

  __device__ __forceinline__ void produce_item(const Row& row, int item) {
    begin_row(row, item);
    Walk walk = begin_walk(row, item);
    Message step = take_step(row, walk);
    next_page_ = page_of(row, step);
    bool is_first = true;
    do {
      const Message next = take_step(row, walk);
      page_ = next_page_;
      next_page_ = page_of(row, next);
      load_step_of_row(step, is_first, !next.tiles[0].exists());
      is_first = false;
      step = next;
    } while (step.tiles[0].exists());
  }

  __device__ __forceinline__ int work_indices() const {
    if constexpr (packs_heads<Config>()) return scheduled_items(args_);
    return scheduled_work_tiles<Config>(args_.attend);
  }

  /// The work tile at a work index, or the item of one.
  __device__ __forceinline__ Row find_row(int work_index) {
    const Row row = row_at(work_index);
    if constexpr (packs_heads<Config>()) {
      if (row.b != place_.b) acquire_maps<Config>(args_, row.b);
    }
    return row;
  }
  __device__ __forceinline__ Row row_at(int work_index) const {
    if constexpr (packs_heads<Config>()) {
      return sequence_tile<Config>(args_, work_index);
    } else {
      return scheduled_row<Config>(args_.attend, args_.schedule, work_index);
    }
  }

  /// What the counter gave; asks for the one behind it. Of several warps the first takes it and
  /// tells the others. A place is written again two work indices on, when all have read it: the
  /// barrier of the one between is behind it.
  __device__ __forceinline__ int next_index(RowCounter& counter) {
    if constexpr (kWarps == 1) {
      const int work_index = counter.take();
      counter.ask();
      return work_index;
    } else {
      int& place = smem_.control()->items[rows_.count % 2];
      if (warp_ == 0) {
        const int work_index = counter.take();
        if (elect_one()) place = work_index;
        counter.ask();
      }
      producer_barrier<Config>().sync();
      return place;
    }
  }

  __device__ __forceinline__ Walk begin_walk(const Row& row, int work_index) const {
    if constexpr (packs_heads<Config>()) {
      return Walk(args_of_work_tile<Config>(args_, row), row);
    } else {
      return WorkTileWalk<Config, Hooks, Args>::begin(args_, row, {},
                                                      share_of_item<Config>(work_index));
    }
  }

  /// The row whose steps are loaded next; consumers find it at rows_.
  __device__ __forceinline__ void begin_row(const Row& row, int work_index) {
    note_kv_head(row);
    if (warp_ == 0 && elect_one()) note_row(row, share_of_item<Config>(work_index));
    place_ = {row.q0, row.h, row.b, 0};
    if constexpr (packs_heads<Config>()) place_.n_k = row.n_k;
    row_slot_ = rows_.slot();
    rows_.advance();
  }

  __device__ __forceinline__ void load_step_of_row(Message step, bool is_first, bool is_last) {
    step.flags = flags_of(step) | (is_last ? Message::kLastOfRow : 0u);
    if constexpr (Shape::kLooksAhead)
      step.flags |= row_slot_ << Message::kRowShift | (is_first ? Message::kFirstOfRow : 0u);
    load_keys(step);
    if constexpr (!Shape::kLooksAhead) load_values();  // of the step before
    if (is_first && step.tiles[0].exists()) {
      if (warp_ == 0) {
        load_query_tiles<Config>(args_, smem_, queries_, place_);
      } else {
        queries_.advance();
      }
    }
    if constexpr (!Shape::kLooksAhead) note_pending(step);
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

  __device__ __forceinline__ Message take_step(const Row& row, Walk& walk) const {
    decltype(auto) args = args_of_work_tile<Config>(args_, row);
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

  __device__ __forceinline__ void load_keys(const Message& step) {
    const Mbarrier full = Smem::barrier(smem_.control()->k_full[keys_.slot()]);
    if constexpr (packs_heads<Config>()) {
      with_page_shift<Config>(args_, [&](auto page_shift) {
        using Shares = BoxShares<typename Shape::KeySlot, Config, decltype(page_shift)::kValue>;
        if (!Shares::include(step, warp_)) return;
        await_slot();
        if (warp_ == 0 && elect_one()) {
          smem_.message(keys_.slot(), 0) = step;
          announce_bytes<typename Shape::KeySlot>(full, step);
        }
        load_sequence_step<Shares>(keys_of_sequence<Config>(args_, place_.b, kv_head_), step, page_,
                                   place_.n_k, smem_.keys(keys_.slot()), full, warp_);
      });
    } else {
      await_slot();
      if (elect_one()) {
        load_step<typename Shape::KeySlot>(args_.maps.k, smem_.keys(keys_.slot()), full, step,
                                           kv_head_, place_.b);
        smem_.message(keys_.slot(), 0) = step;
        announce_bytes<typename Shape::KeySlot>(full, step);
      }
    }
    keys_.advance();
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

  __device__ __forceinline__ void note_pending(const Message& step) {
    pending_ = step;
    has_pending_ = true;
    pending_head_ = kv_head_;
    pending_batch_ = place_.b;
    if constexpr (packs_heads<Config>()) pending_n_k_ = place_.n_k, pending_page_ = page_;
  }

  /// V of the step whose K was loaded before the last.
  __device__ __forceinline__ void load_values() {
    if (!has_pending_) return;
    const Mbarrier full = Smem::barrier(smem_.control()->v_full[values_.slot()]);
    const Mbarrier empty = Smem::barrier(smem_.control()->v_empty[values_.slot()]);
    if constexpr (packs_heads<Config>()) {
      with_page_shift<Config>(args_, [&](auto page_shift) {
        using Shares = BoxShares<typename Shape::ValueSlot, Config, decltype(page_shift)::kValue>;
        if (!Shares::include(pending_, warp_)) return;
        empty.wait(values_.phase() ^ 1);
        if (warp_ == 0 && elect_one()) announce_bytes<typename Shape::ValueSlot>(full, pending_);
        load_sequence_step<Shares>(values_of_sequence<Config>(args_, pending_batch_, pending_head_),
                                   pending_, pending_page_, pending_n_k_,
                                   smem_.values(values_.slot()), full, warp_);
      });
    } else {
      empty.wait(values_.phase() ^ 1);
      if (elect_one()) {
        load_step<typename Shape::ValueSlot>(args_.maps.v, smem_.values(values_.slot()), full,
                                             pending_, pending_head_, pending_batch_);
        announce_bytes<typename Shape::ValueSlot>(full, pending_);
      }
    }
    values_.advance();
    has_pending_ = false;
  }

  static constexpr u32 kAllTiles = (1u << Shape::kStepTiles) - 1;

  /// Brings the `wanted` tiles of a step, a bit each. One that is missing is filled with zeros,
  /// from behind the last tile. What the barrier has to know comes behind the loads, which are
  /// under way meanwhile: bytes may come before they are expected.
  template <class Slot>
  __device__ __forceinline__ void load_step(const TensorMap& map, u32 slot, Mbarrier full,
                                            const Message& step, int head, int batch,
                                            u32 wanted = kAllTiles) const {
    if (!step.tiles[0].exists()) return;
    const auto policy = l2_policy<L2Policy::kKeepLast>();
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

  /// The step's bytes in a slot are on their way; a step without tiles has none.
  template <class Slot>
  __device__ __forceinline__ static void announce_bytes(Mbarrier full, const Message& step,
                                                        u32 wanted = kAllTiles) {
    int tiles = 0;
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n) tiles += wanted >> n & 1;
    if (step.tiles[0].exists()) {
      full.arrive_expecting(Slot::kBytes / Shape::kStepTiles * tiles);
    } else {
      full.arrive();
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
  Place place_;
  int kv_head_ = 0;   ///< of place_
  u32 row_slot_ = 0;  ///< where consumers find it
  int pending_head_ = 0, pending_batch_ = 0;
  /// Of sequences: the lane's page of the step that comes next, of this one, and of the values that
  /// are still to be loaded.
  int next_page_ = 0, page_ = 0, pending_page_ = 0, pending_n_k_ = 0;
};

}  // namespace lacuna
