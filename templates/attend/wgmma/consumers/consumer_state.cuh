// What a consumer warpgroup of the wgmma family keeps: its registers, and its places in the rings
// and among the work tiles of its block. The functions that work on it take it as `State& at`.
#pragma once

#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/gates/row_gates.cuh"
#include "attend/wgmma/gates/step_votes.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/scores/lazy_max.cuh"
#include "base/pin.cuh"

namespace lacuna {

template <class ConfigOf, class HooksOf, class ArgsOf>
struct ConsumerState {
  using Config = ConfigOf;
  using Hooks = HooksOf;
  using Args = ArgsOf;
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Element = typename Config::Element;
  using Row = typename Shape::Row;
  using Ring = RingPosition<Config::kStages>;
  using Values = typename ValueRing<Config>::Position;
  using Queries = RingPosition<Config::kQueryBuffers>;

  __device__ __forceinline__ ConsumerState(const Args& launch, const Smem& shared, int number)
      : args(launch),
        smem(shared),
        warpgroup(number),
        gate(*shared.control(), number),
        votes(*shared.control(), number) {
    to_log2 = unit() * kLog2E;
  }

  template <int kSlots, class Position>
  __device__ __forceinline__ void await(const unsigned long long (&full)[kSlots],
                                        const Position& at) const {
    Smem::barrier(full[at.slot()]).wait(at.phase());
  }

  /// Waits for the keys of the next step, and returns the message that came with them.
  __device__ __forceinline__ Message receive() {
    await(smem.control()->k_full, keys);
    return smem.message(keys.slot(), warpgroup);
  }

  /// Gives back the slot of keys and the step's message. Each warp calls it when all its lanes have
  /// read both; one lane arrives for the warp.
  __device__ __forceinline__ void release_keys() {
    __syncwarp();
    if (lane_index() == 0) Smem::barrier(smem.control()->k_empty[keys.slot()]).arrive();
    keys.advance();
  }
  __device__ __forceinline__ void release_values(const Values& slot) const {
    if (lane_index() == 0) Smem::barrier(smem.control()->v_empty[slot.slot()]).arrive();
  }
  /// Gives back the queries' buffer. Each warp calls it when none of its lanes reads them any more.
  __device__ __forceinline__ void release_queries() {
    if (lane_index() == 0) Smem::barrier(smem.control()->q_empty[queries.slot()]).arrive();
    queries.advance();
  }

  /// Gives the queries' buffer, through which O was stored, back to the producer once the copy
  /// engine has read O from it. With two buffers this wait is put off until the next row is under
  /// way.
  __device__ __forceinline__ void finish_store() {
    if (!has_stored) return;
    if (elect_one()) {  // the same thread that stored
      tma_store_wait_read();
      Smem::barrier(smem.control()->q_empty[queries.before().slot()]).arrive();
    }
    has_stored = false;
  }

  /// Of the step whose keys were released last: where its values lie.
  __device__ __forceinline__ Values values() const {
    return ValueRing<Config>::at(args, keys.count - 1);
  }

  __device__ __forceinline__ TileKeys<Config> tile_keys() const {
    return TileKeys<Config>(smem.control()->ring, warpgroup);
  }

  /// Reads the work tile from shared memory again. Rare paths do so, in order that the loop over
  /// steps need not keep it in registers.
  __device__ __forceinline__ Row reload_row() const {
    u32 slot = rows.slot();
    pin(slot);
    return row_of_warpgroup<Config>(args, smem.control()->rows[slot], warpgroup);
  }

  /// Which of its row's shares this is.
  __device__ __forceinline__ int share() const {
    if constexpr (SplitKv<Config>::kIsSplit) return smem.control()->shares[rows.slot()];
    return 0;
  }

  __device__ __forceinline__ auto lane_rows(const Row& of) const {
    return lane_rows_of<Config>(args, of, warpgroup);
  }

  /// Scores -> natural units.
  __device__ __forceinline__ float unit() const {
    return Config::kHasScore ? 1.0f : args.attend.scale;
  }

  // The order of members decides which registers the compiler takes: keep it.
  const Args& args;
  const Smem smem;
  const int warpgroup;
  float to_log2;                        ///< scores -> log2 domain
  RingPosition<Shape::kRowSlots> rows;  ///< of `row`
  bool has_stored = false;  ///< O of the row before is being stored from its queries' buffer
  bool is_fresh;            ///< no tile of a row of its own has been asked about
  Row row;
  Queries queries;  ///< of `row`
  Ring keys;        ///< of the step under way; its values' position is the same, a step later
  typename Hooks::GateRow gate_row;  ///< of `row`, what the gate compares with
  WgmmaGate<Config> gate;
  StepVotes<Config> votes;
  bool has_weights[Shape::kParts];  ///< of the step whose product with V is due
  LazyMax softmax;
  float output[Shape::kColumnBlocks][4];
  RowGates<Config> row_gates;
};

/// Weights are times 2 to this.
template <class Config>
__device__ __forceinline__ float range_log2() {
  return WgmmaShape<Config>::kHasE4m3Values ? kLog2E4m3Range : 0.0f;
}

}  // namespace lacuna
