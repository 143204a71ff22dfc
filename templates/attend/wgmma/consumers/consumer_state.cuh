// What a consumer warpgroup of the wgmma family keeps: its registers, and its places in the rings
// and among the work tiles of its block.
#pragma once

#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/gates/step_votes.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/results/packed_results.cuh"
#include "attend/wgmma/scores/lazy_max.cuh"
#include "attend/wgmma/scores/wgmma_scores.cuh"
#include "base/pin.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ConsumerState {
 protected:
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Element = typename Config::Element;
  using Row = typename Shape::Row;
  using Ring = RingPosition<Config::kStages>;

  __device__ __forceinline__ ConsumerState(const Args& args, const Smem& smem, int warpgroup)
      : args_(args),
        smem_(smem),
        warpgroup_(warpgroup),
        gate_(*smem.control(), warpgroup),
        votes_(*smem.control(), warpgroup) {
    to_log2_ = unit() * kLog2E;
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

  __device__ __forceinline__ TileKeys<Config> tile_keys() const {
    return TileKeys<Config>(smem_.control()->ring);
  }

  /// For what is seldom done: the loop over steps keeps no registers for it.
  __device__ __forceinline__ Row reload_row() const {
    u32 slot = rows_.slot();
    pin(slot);
    return row_of_warpgroup<Config>(args_, smem_.control()->rows[slot], warpgroup_);
  }

  /// Which of its row's shares this is.
  __device__ __forceinline__ int share() const {
    if constexpr (SplitKv<Config>::kIsSplit) return smem_.control()->shares[rows_.slot()];
    return 0;
  }

  __device__ __forceinline__ static int first_row(const WorkTile& row) {
    return first_row_of_warp<Config>(row);
  }
  __device__ __forceinline__ auto lane_rows(const Row& row) const {
    return lane_rows_of<Config>(args_, row, warpgroup_);
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

  __device__ __forceinline__ static int thread_of_row() { return lacuna::thread_of_row<Config>(); }

  __device__ __forceinline__ static int warp() { return warp_of_warpgroup(); }

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
