// How the producers of the wgmma family keep the rings of attend/wgmma/layout/wgmma_shape.cuh full:
// places in them, loads of a step's keys and, a step later, of its values, and what consumers are
// told. Which rows and steps come is a producer's own.
#pragma once

#include "args/attend_maps.cuh"
#include "attend/report.cuh"
#include "attend/wgmma/layout/wgmma_smem.cuh"
#include "attend/wgmma/producers/sequence_loads.cuh"
#include "base/pin.cuh"

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
  if constexpr (has_sequence_tiles<Config>()) {
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

/// load(step, next, is_first, is_last) for each step of a row, from its first on, which may have no
/// tile: when one is loaded the next is known. take(): the next; exists(step): false behind the
/// last.
template <class Step, class Take, class Exists, class Load>
__device__ __forceinline__ void for_each_step(Step& step, const Take& take, const Exists& exists,
                                              const Load& load) {
  bool is_first = true, is_last;
  do {
    const Step next = take();
    is_last = !exists(next);
    load(step, next, is_first, is_last);
    is_first = false;
    step = next;
  } while (!is_last);
}

/// Of the tiles of a step, a bit each.
template <class Config>
inline constexpr u32 kAllTiles = (1u << WgmmaShape<Config>::kStepTiles) - 1;

/// Loads the `wanted` tiles of a step, a bit each. In place of a missing one zeros are loaded from
/// behind the last of `k_tiles`. The barrier is told how many bytes to expect after the loads were
/// issued, because that takes time, and bytes may arrive before they are expected.
template <class Config, class Slot, class Message>
__device__ __forceinline__ void load_step_tiles(const TensorMap& map, u32 slot, Mbarrier full,
                                                const Message& step, int k_tiles, int head,
                                                int batch, u32 wanted = kAllTiles<Config>) {
  if (!step.tiles[0].exists()) return;
  const auto policy = l2_policy<L2Policy::kKeepLast>();
#pragma unroll
  for (int n = 0; n < WgmmaShape<Config>::kStepTiles; ++n) {
    if ((wanted >> n & 1) == 0) continue;
    const TileRef tile = step.tiles[n];
    const int token = (tile.exists() ? tile.index() : k_tiles) * Config::kTileK;
#pragma unroll
    for (int p = 0; p < Slot::kBoxes; ++p) {
      tma_load(map, slot + Slot::offset(n, p), full, Slot::origin(token, p, head, batch), policy);
    }
  }
}

/// Loads the biases of a step's keys, of the head whose biases begin at `bias`. In place of a
/// missing tile's, which nobody reads, come those of the first tile.
template <class Config, class Message>
__device__ __forceinline__ void load_step_biases(const float* bias, const WgmmaSmem<Config>& smem,
                                                 u32 slot, Mbarrier full, const Message& step) {
  if (!step.tiles[0].exists()) return;
#pragma unroll
  for (int n = 0; n < WgmmaShape<Config>::kStepTiles; ++n) {
    const TileRef tile = step.tiles[n];
    const int token = (tile.exists() ? tile.index() : 0) * Config::kTileK;
    bulk_load(bias + token, shared_address(&smem.control()->column_bias[slot][n * Config::kTileK]),
              Config::kTileK * static_cast<int>(sizeof(float)), full);
  }
}

/// The step's bytes in a slot are on their way; a step without tiles has none. `key_bytes`: that
/// come with each key besides.
template <class Config, class Slot, class Message>
__device__ __forceinline__ void announce_step_bytes(Mbarrier full, const Message& step,
                                                    u32 wanted = kAllTiles<Config>,
                                                    int key_bytes = 0) {
  int tiles = 0;
#pragma unroll
  for (int n = 0; n < WgmmaShape<Config>::kStepTiles; ++n) tiles += wanted >> n & 1;
  if (step.tiles[0].exists()) {
    full.arrive_expecting(
        (Slot::kBytes / WgmmaShape<Config>::kStepTiles + Config::kTileK * key_bytes) * tiles);
  } else {
    full.arrive();
  }
}

/// What loads have to know of the row whose steps they bring. No more of it: the registers of a
/// producer are few.
struct LoadedRow {
  int q0 = 0, h = 0, b = -1, n_k = 0, kv_head = 0;
};

/// Of a work tile. Pinned: otherwise the compiler divides where the head is used, once a step,
/// between the wait for a free slot and the load into it.
template <class Args>
__device__ __forceinline__ int kv_head_of(const Args& args, const WorkTile& row) {
  int head = row.h / args.attend.heads_per_kv;
  pin(head);
  return head;
}
template <class Args>
__device__ __forceinline__ int kv_head_of(const Args&, const SequenceTile& row) {
  return row.kv_head;
}

/// Tells the consumers which row comes next, in its place; by one thread.
template <class Config, class Row>
__device__ __forceinline__ void note_row(const WgmmaSmem<Config>& smem, u32 place, const Row& row,
                                         int share) {
  smem.control()->rows[place] = row;
  if constexpr (SplitKv<Config>::kIsSplit) smem.control()->shares[place] = share;
}

/// What a warp brings: keys of a step and values of the step before, or one of them where other
/// warps bring the other (producers/sequence_producer.cuh).
enum class LoadedOperands { kKeysAndValues, kKeys, kValues };

/// `kKeepsTheRow`: of a batch of sequences, whether a warp holds its row in registers. If not, each
/// load reads the row from shared memory. That takes 1 % longer, but leaves enough registers for a
/// mask of several ranges.
template <class Config, class Args, LoadedOperands kOperands = LoadedOperands::kKeysAndValues,
          bool kKeepsTheRow = true>
struct StepLoads {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  static constexpr bool kBringsKeys = kOperands != LoadedOperands::kValues;
  static constexpr bool kBringsValues = kOperands != LoadedOperands::kKeys;
  static constexpr bool kKeepsRow = kKeepsTheRow;
  static constexpr bool kAsksAhead = false;  ///< for the page of the step behind the one it loads

  /// `number`: this warp, of those that bring the same operands.
  __device__ __forceinline__ StepLoads(const Args& launch, const Smem& shared, int number)
      : args(launch), smem(shared), warp(number), values(ValueRing<Config>::at(launch, 0)) {}

  /// Is this the one warp that tells others what comes, and brings the queries?
  __device__ __forceinline__ bool leads() const { return kBringsKeys && warp == 0; }
  /// Warps that bring the same operands take steps in turns, counted through all rows.
  __device__ __forceinline__ bool has_turn(u32 step) const {
    return static_cast<int>(step % Shape::kWarpsOfOperand) == warp;
  }

  /// Nobody reads what the slot of keys and the message of its step held.
  __device__ __forceinline__ void await_slot() const {
    Smem::barrier(smem.control()->k_empty[keys.slot()]).wait(keys.phase() ^ 1);
    if constexpr (Shape::kLooksAhead)
      Smem::barrier(smem.control()->noted[keys.slot()]).wait(keys.phase() ^ 1);
  }

  __device__ __forceinline__ void announce_end() const {
    await_slot();
    if (elect_one()) {
      for (int r = 0; r < Config::kWorkTiles; ++r)
        smem.message(keys.slot(), r).flags = Message::kEnd;
      Smem::barrier(smem.control()->k_full[keys.slot()]).arrive();
    }
  }

  /// The step's keys and its message.
  __device__ __forceinline__ void load_keys(const Message& step) {
    const Mbarrier full = Smem::barrier(smem.control()->k_full[keys.slot()]);
    if constexpr (has_sequence_tiles<Config>()) {
      const auto announce = [&] {
        if (!elect_one()) return;
        smem.message(keys.slot(), 0) = step;
        announce_keys(full, step);
      };
      if (has_turn(keys.count)) load_keys_of_sequence(step, full, announce);
    } else {
      await_slot();
      if (elect_one()) {
        issue_keys(full, step);
        smem.message(keys.slot(), 0) = step;
        announce_keys(full, step);
      }
    }
    keys.advance();
  }
  /// The loads of a step's keys, and what its slot is told of their bytes; by one thread.
  __device__ __forceinline__ void issue_keys(Mbarrier full, const Message& step) const {
    load_step<typename Shape::KeySlot>(args.maps.k, smem.keys(keys.slot()), full, step, row.kv_head,
                                       row.b);
    issue_biases(full, step, row);
  }
  /// Of a step's keys, if they have any; by one thread.
  __device__ __forceinline__ void issue_biases(Mbarrier full, const Message& step,
                                               const LoadedRow& of) const {
    if constexpr (Config::kHasColumnBias) {
      const float* const biases = prepared_of<Config>(args, args.predict.column_bias, of.b);
      load_step_biases<Config>(
          biases + prepared_head<Config>(of.b, of.h, args.attend.n_h) * args.predict.k_padded, smem,
          keys.slot(), full, step);
    }
  }
  __device__ __forceinline__ static void announce_keys(Mbarrier full, const Message& step) {
    constexpr int kBiasBytes = Config::kHasColumnBias ? sizeof(float) : 0;
    announce_step_bytes<Config, typename Shape::KeySlot>(full, step, kAllTiles<Config>, kBiasBytes);
  }

  __device__ __forceinline__ void note_pending(const Message& step) {
    pending = step;
    has_pending = true;
    pending_head = row.kv_head;
    pending_batch = row.b;
    pending_row_slot = row_slot;
  }

  /// V of the step that is pending.
  __device__ __forceinline__ void load_values() {
    if (!has_pending) return;
    has_pending = false;
    if constexpr (has_sequence_tiles<Config>()) {
      load_values_of_sequence(pending, [&] { return noted_row(pending_row_slot); });
      return;
    }
    const Mbarrier full = Smem::barrier(smem.control()->v_full[values.slot()]);
    const Mbarrier empty = Smem::barrier(smem.control()->v_empty[values.slot()]);
    empty.wait(values.phase() ^ 1);
    if (elect_one()) {
      load_step<typename Shape::ValueSlot>(args.maps.v, smem.values(values.slot()), full, pending,
                                           pending_head, pending_batch);
      announce_bytes<typename Shape::ValueSlot>(full, pending);
    }
    values.advance();
  }

  /// The row whose steps these are.
  __device__ __forceinline__ LoadedRow sequence_row() const {
    if constexpr (kKeepsRow) {
      return row;
    } else {
      return noted_row(row_slot);
    }
  }
  __device__ __forceinline__ LoadedRow noted_row(u32 slot) const {
    const auto& noted = smem.control()->rows[slot];
    return {noted.q0, noted.h, noted.b, noted.n_k, noted.kv_head};
  }

  /// Of sequences. Which boxes there are is chosen, and the page asked for, before the wait:
  /// between a place that is free and the load that fills it each cycle counts. announce(): by the
  /// whole warp, when the place is free.
  template <class Announce>
  __device__ __forceinline__ void load_keys_of_sequence(const Message& step, Mbarrier full,
                                                        const Announce& announce) {
    using Slot = typename Shape::KeySlot;
    with_page_shift<Config, Slot>(args, [&](auto page_shift) {
      using Boxes = TileBoxes<Slot, Config, page_shift.kValue>;
      const LoadedRow from = sequence_row();
      const auto page_of = pages_of_step<Boxes>(args, from, step);
      await_slot();
      announce();
      load_sequence_step<Boxes>(keys_of_sequence<Config>(args, from.b, from.kv_head, from.n_k),
                                step, page_of, smem.keys(keys.slot()), full);
      if (Config::kHasColumnBias && elect_one()) issue_biases(full, step, from);
    });
  }
  /// V of a step, by a warp that brings nothing else.
  __device__ __forceinline__ void load_values_of_sequence(const Message& step) {
    load_values_of_sequence(step, [&] { return sequence_row(); });
  }
  /// `row_of_step`: LoadedRow of the step.
  template <class RowOfStep>
  __device__ __forceinline__ void load_values_of_sequence(const Message& step,
                                                          const RowOfStep& row_of_step) {
    if (has_turn(values.count)) {
      const Mbarrier full = Smem::barrier(smem.control()->v_full[values.slot()]);
      using Slot = typename Shape::ValueSlot;
      with_page_shift<Config, Slot>(args, [&](auto page_shift) {
        using Boxes = TileBoxes<Slot, Config, page_shift.kValue>;
        const LoadedRow from = row_of_step();
        const auto page_of = pages_of_step<Boxes>(args, from, step);
        Smem::barrier(smem.control()->v_empty[values.slot()]).wait(values.phase() ^ 1);
        if (elect_one()) announce_bytes<Slot>(full, step);
        load_sequence_step<Boxes>(values_of_sequence<Config>(args, from.b, from.kv_head, from.n_k),
                                  step, page_of, smem.values(values.slot()), full);
      });
    }
    values.advance();
  }

  /// As load_step_tiles.
  template <class Slot>
  __device__ __forceinline__ void load_step(const TensorMap& map, u32 slot, Mbarrier full,
                                            const Message& step, int head, int batch,
                                            u32 wanted = kAllTiles<Config>) const {
    load_step_tiles<Config, Slot>(map, slot, full, step, args.attend.k_tiles, head, batch, wanted);
  }
  template <class Slot>
  __device__ __forceinline__ static void announce_bytes(Mbarrier full, const Message& step,
                                                        u32 wanted = kAllTiles<Config>) {
    announce_step_bytes<Config, Slot>(full, step, wanted);
  }

  const Args& args;
  const Smem smem;
  const int warp;
  RingPosition<Config::kQueryBuffers> queries;
  RingPosition<Config::kStages> keys;
  typename ValueRing<Config>::Position values;
  RingPosition<Shape::kRowSlots> rows;
  Message pending;  ///< whose V is still to be loaded
  bool has_pending = false;
  LoadedRow row;     ///< whose steps these are
  u32 row_slot = 0;  ///< where consumers find it
  int pending_head = 0, pending_batch = 0;
  u32 pending_row_slot = 0;
};

}  // namespace lacuna
