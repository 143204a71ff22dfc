// The producer for consumers that look ahead (attend/wgmma/consumers/tile_gate_consumer.cuh): one
// warp loads keys as ever, another decides about tiles from what the consumers publish, and loads
// the values of those alone that count.
//
//   keys                    values                            consumers
//   K_j  -- k_full[s] --->  the step's message;               S = Q K_j
//                           the first of a row: V_j,
//                           whose first tile counts
//        <- noted[s] -----  the message is read
//        <- k_empty[s] -------------------------------------  S is complete
//   K in the same slot      <- polled[s] -------------------  their maxima are published
//                           -- decided[s] ----------------->  which tiles count
//                           any other step: V_j, of those
#pragma once

#include "arch/redux.cuh"
#include "attend/wgmma/gates/gate_question.cuh"
#include "attend/wgmma/producers/producer.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TileGateProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Ring = RingPosition<Config::kStages>;
  using Row = typename Shape::Row;
  static constexpr int kTiles = Shape::kStepTiles;

 public:
  static constexpr int kWarps = 2;  ///< that run

  __device__ __forceinline__ TileGateProducer(const Args& args, const Smem& smem)
      : args_(args), smem_(smem), producer_(args, smem) {}

  /// By whole warps.
  __device__ __forceinline__ void run() {
    if (warp_index() == Shape::kConsumerWarps) {
      producer_.run();
    } else {
      produce_values();
    }
  }

 private:
  __device__ __forceinline__ void produce_values() {
    auto& control = *smem_.control();
    StepLoads<Config, Args>& loads = producer_.loads();
    typename Hooks::GateRow gate_row;  // of the step's row
    int sequence = -1;                 // whose map of values this warp has acquired
    Ring at;
    while (true) {
      Smem::barrier(control.k_full[at.slot()]).wait(at.phase());
      const Message step = smem_.message(at.slot(), 0);
      if (step.has(Message::kEnd)) return;
      __syncwarp();
      if (elect_one()) Smem::barrier(control.noted[at.slot()]).arrive();
      const Row row = control.rows[step.flags >> Message::kRowShift];
      const bool is_first = step.has(Message::kFirstOfRow);
      if (is_first) {
        gate_row = gate_of_row<Config, Hooks>(args_, row);
        loads.row.kv_head = kv_head_of(args_, row);
        acquire_values(sequence, row);
      }
      const int page = page_of_step(row, step);
      await_value_slot(loads);
      if (is_first) put_values(loads, step, row, page, kAllTiles<Config>);
      const u32 gated = gated_tiles(row, gate_row, step, await_votes(at));
      const u32 counted = existing_tiles(step) & ~gated;
      decide(at.slot(), counted);
      if (!is_first) put_values(loads, step, row, page, counted);
      if (__builtin_expect(wants_report(args_.attend), false)) report(step, row, gated);
      at.advance();
    }
  }

  /// Of a batch of sequences: the map of the row's values, before the first load by it.
  __device__ __forceinline__ void acquire_values(int& sequence, const Row& row) const {
    if constexpr (has_sequence_tiles<Config>()) {
      if (row.b != sequence) acquire_map(maps_of_sequence(args_, row.b)[kSequenceValues]);
      sequence = row.b;
    }
  }
  /// Of keys in pages: the page of this lane's box, asked for before the decision is awaited.
  __device__ __forceinline__ int page_of_step(const Row& row, const Message& step) const {
    if constexpr (!attends_to_pages<Config>()) {
      return 0;
    } else {
      return page_of_lane<Config, typename Shape::ValueSlot>(args_, row, step,
                                                             page_shift_of(args_.sequences));
    }
  }

  /// The largest scores of a step's tiles.
  __device__ __forceinline__ typename Shape::Vote await_votes(const Ring& at) const {
    const auto& control = *smem_.control();
    Smem::barrier(control.polled[at.slot()]).wait(at.phase());
    auto votes = control.votes[at.slot()][lane_index() % Shape::kConsumerWarps];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) votes.tile_max[t] = max_over_lanes(votes.tile_max[t]);
    return votes;
  }

  /// A bit for each tile.
  __device__ __forceinline__ static u32 existing_tiles(const Message& step) {
    u32 tiles = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) tiles |= static_cast<u32>(step.tiles[t].exists()) << t;
    return tiles;
  }

  /// Those that the gate leaves out, by the votes of all warps.
  __device__ __forceinline__ u32 gated_tiles(const Row& row,
                                             const typename Hooks::GateRow& gate_row,
                                             const Message& step,
                                             const typename Shape::Vote& votes) const {
    const float unit = Config::kHasScore ? 1.0f : args_.attend.scale;
    u32 gated = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const float tile_max = float_of_ordered(votes.tile_max[t]) * unit;
      const int j = step.tiles[t].exists() ? step.tiles[t].index() : 0;  // any: it does not count
      const bool skip = gate_skips<Config, Hooks>(args_, row, gate_row, j, {tile_max, 0.0f});
      gated |= static_cast<u32>(skip) << t;
    }
    if (step.has(Message::kFirstOfRow)) gated &= ~1u;
    return gated & existing_tiles(step);
  }

  __device__ __forceinline__ void decide(u32 slot, u32 counted) const {
    constexpr u32 kTileParts = (1u << Config::kTileK / Shape::kPartKeys) - 1;
    if (elect_one()) {
      smem_.control()->chosen[slot] = counted * kTileParts;
      Smem::barrier(smem_.control()->decided[slot]).arrive();
    }
  }

  /// Whose values the slot held counted two loads ago: they were released before the votes that
  /// come next.
  __device__ __forceinline__ void await_value_slot(const StepLoads<Config, Args>& loads) const {
    Smem::barrier(smem_.control()->v_empty[loads.values.slot()]).wait(loads.values.phase() ^ 1);
  }

  /// Into a slot that is free. The consumers of a step that counts wait for its values, which leave
  /// when the decision is known: nothing is worked out in between that could be before.
  __device__ __forceinline__ void put_values(StepLoads<Config, Args>& loads, const Message& step,
                                             const Row& row, int page, u32 wanted) const {
    using Slot = typename Shape::ValueSlot;
    if (wanted == 0 || !step.tiles[0].exists()) return;
    const Mbarrier full = Smem::barrier(smem_.control()->v_full[loads.values.slot()]);
    if constexpr (has_sequence_tiles<Config>()) {
      if (elect_one()) loads.template announce_bytes<Slot>(full, step, wanted);
      with_page_shift<Config, Slot>(args_, [&](auto page_shift) {
        load_sequence_step<TileBoxes<Slot, Config, page_shift.kValue>>(
            values_of_sequence<Config>(args_, row.b, row.kv_head, row.n_k), step,
            PagesOfLanes{page}, smem_.values(loads.values.slot()), full, wanted);
      });
    } else if (elect_one()) {
      loads.template load_step<Slot>(args_.maps.v, smem_.values(loads.values.slot()), full, step,
                                     loads.row.kv_head, row.b, wanted);
      loads.template announce_bytes<Slot>(full, step, wanted);
    }
    loads.values.advance();
  }

  /// The consumers have cleared the row's report before they voted for the first time.
  __device__ __forceinline__ void report(const Message& step, const WorkTile& row,
                                         u32 gated) const {
    if (lane_index() != 0) return;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      if (step.tiles[t].exists())
        write_visit<Config>(args_.attend, row, step.tiles[t].index(), (gated >> t & 1) != 0);
    }
  }

  const Args& args_;
  const Smem smem_;
  WgmmaProducer<Config, Hooks, Args> producer_;  ///< of the first warp; the other's loads
};

}  // namespace lacuna
