// The producer of the wgmma family where each warpgroup has a work tile of its own: it goes
// through the tiles of both rows' lists, and tells each warpgroup which of a step are its own.
#pragma once

#include "attend/wgmma/producers/step_loads.cuh"
#include "pipeline/two_list_walk.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TwoListProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Row = typename Shape::Row;
  /// A walk over two lists leaves no registers for the row.
  using Loads = StepLoads<Config, Args, LoadedOperands::kKeysAndValues, false>;

 public:
  static constexpr int kWarps = 1;  ///< that run

  __device__ __forceinline__ TwoListProducer(const Args& args, const Smem& smem)
      : loads_(args, smem, 0) {}

  /// By one whole warp.
  __device__ __forceinline__ void run() {
    if constexpr (has_sequence_tiles<Config>()) {
      for_each_item<Config>(loads_.args, [this](const SequenceTile& first) {
        if (first.b != loads_.row.b) acquire_maps<Config, Loads>(loads_.args, first.b, true);
        produce_rows(first, 0);
      });
    } else {
      for_each_work_tile<Config>(loads_.args, [this](const WorkTile& first, int work_index) {
        produce_rows(first, share_of_item<Config>(work_index));
      });
    }
    // In the order of all others: keys of a step before values of the one before it. A warpgroup
    // that passes steps on waits for the message behind its last one while the slot that the last
    // values will take is still its own (passes_within_run).
    loads_.announce_end();
    loads_.load_values();
  }

 private:
  /// The row and the one behind it.
  __device__ __forceinline__ void produce_rows(const Row& first, int share) {
    loads_.row = {first.q0, first.h, first.b, 0, kv_head_of(loads_.args, first)};
    loads_.row_slot = loads_.rows.slot();
    loads_.rows.advance();
    if (elect_one()) note_row(loads_.smem, loads_.row_slot, first, share);
    __syncwarp();
    typename Config::Walk walk(args_of_work_tile<Config>(loads_.args, first), first, share);
    const auto load = [&](const SharedTile& now, const SharedTile&, bool is_first, bool is_last) {
      load_keys(now, is_last);
      loads_.load_values();  // of the step before
      if (is_first) load_query_tiles<Config>(loads_.args, loads_.smem, loads_.queries, first);
      loads_.note_pending(tiles_of(now));
    };
    const auto take = [&] { return walk.take_step(); };
    SharedTile step = take();
    for_each_step(step, take, any_exists, load);
  }

  __device__ __forceinline__ static bool any_exists(const SharedTile& step) {
    return __any_sync(kAllLanes, step.exists());
  }

  /// The step as all lanes see it, whoever its tiles are for.
  __device__ __forceinline__ static Message tiles_of(const SharedTile& step) {
    Message tiles;
#pragma unroll
    for (int n = 0; n < Shape::kStepTiles; ++n) {
      const SharedTile tile(__shfl_sync(kAllLanes, step.bits(), n));
      if (tile.exists()) tiles.tiles[n] = TileRef(static_cast<u32>(tile.index()));
    }
    return tiles;
  }

  __device__ __forceinline__ void load_keys(const SharedTile& step, bool is_last) {
    const Mbarrier full = Smem::barrier(loads_.smem.control()->k_full[loads_.keys.slot()]);
    const Message tiles = tiles_of(step);
    const auto announce = [&] {
      for (int r = 0; r < Config::kWorkTiles; ++r) write_message(r, step, is_last);
      __syncwarp();
      if (elect_one()) loads_.announce_keys(full, tiles);
    };
    if constexpr (has_sequence_tiles<Config>()) {
      loads_.load_keys_of_sequence(tiles, full, announce);
    } else {
      loads_.await_slot();
      if (elect_one()) loads_.issue_keys(full, tiles);
      announce();
    }
    loads_.keys.advance();
  }

  /// What warpgroup r has of the step; by the lanes that hold its tiles.
  __device__ __forceinline__ void write_message(int r, const SharedTile& step, bool is_last) const {
    Message& message = loads_.smem.message(loads_.keys.slot(), r);
    const bool has_place = lane_index() < Shape::kStepTiles;
    const TileRef tile = has_place ? step.of(r) : TileRef();
    const bool takes_part = __any_sync(kAllLanes, tile.exists());
    const bool needs_mask_or_report =
        __any_sync(kAllLanes, has_place && (!tile.exists() || tile.needs_mask())) ||
        wants_report(loads_.args.attend);
    if (has_place) message.tiles[lane_index()] = tile;
    if (lane_index() == 0) {
      message.flags = (is_last ? Message::kLastOfRow : 0u) |
                      (needs_mask_or_report ? Message::kNeedsMaskOrReport : 0u) |
                      (takes_part ? 0u : Message::kSkipped);
    }
  }

  Loads loads_;
};

}  // namespace lacuna
