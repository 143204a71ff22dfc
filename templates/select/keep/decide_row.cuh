// The end of an estimate that has p of a whole row: whatever `keep` reads of it, by a block, or, of
// a short row, by a warp.
#pragma once

#include "select/keep/order_warp.cuh"
#include "select/keep/select_first.cuh"
#include "select/keep/select_row.cuh"

namespace lacuna {

/// p and score, by tile, were written before the block met, and may be written again afterwards; p
/// is lost. `order`: room for two numbers of each tile, where `keep` reads what is known in order.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void decide_row(
    const Args& args, const KeepRow& row, float* p, const float* score, int* order,
    OrderScratch<DecidingTeam<Config>::kSize / 32>& order_scratch, SelectScratch& scratch) {
  if constexpr (Config::kKeepsFirst) {
    select_first<Config, Hooks>(args, row, p, order_scratch, scratch.reduce);
  } else {
    RowValues values;
    values.score = score;
    values.p = p;
    if constexpr (Config::kOrdersTiles) {
      const int tiles = args.predict.keep_k_tiles;
      order_tiles<DecidingTeam<Config>>(p, tiles, order, order + tiles, order_scratch);
      values.order = order;
      values.ordered = tiles;
    }
    select_row<Config, Hooks>(args, row, values, scratch);
  }
}

/// What is known of a row of up to kMostWarpTiles tiles, the same in all lanes but for `seen`.
struct WarpRow {
  int visible = 0;  ///< tiles
  int reach = 0;    ///< up to the last visible one
  u32 seen = 0;     ///< of this lane's tiles, from bit 0 on: the visible ones

  /// This lane's tile of the 32 from `first` on.
  __device__ __forceinline__ void add(int first, bool sees, int tiles) {
    const u32 votes = __ballot_sync(kAllLanes, sees);
    visible += __popc(votes);
    if (votes != 0) reach = smaller(first + 32, tiles);
    if (sees) seen |= 1u << first / 32;
  }
};

/// Shared memory of a warp that decides a row.
template <class Config>
struct WarpDecisionSmem {
  static constexpr int kTiles = Config::kOrdersTiles ? kMostWarpTiles : 32;
  int order[kTiles];
  unsigned words[kTiles / 32];
};

/// By a warp: p and score of the tiles up to `tiles.reach`, written before it met.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void decide_row_by_warp(const Args& args, const KeepRow& row,
                                                   const WarpRow& tiles, float* p,
                                                   const float* score,
                                                   WarpDecisionSmem<Config>& smem) {
  const WarpTeam warp;
  RowValues values;
  values.score = score;
  values.p = p;
  if constexpr (Config::kKeepsFirst) {
    const WarpKeys<kMostWarpTiles / 32> keys(p, tiles.seen, tiles.reach);
    select_first<Config, Hooks>(args, row, keys, tiles.visible, warp);
  } else if constexpr (Config::kOrdersTiles) {
    if (tiles.reach <= kMostWarpTiles / 2) {
      order_by_warp<kMostWarpTiles / 64>(p, tiles.reach, smem.order);
    } else {
      order_by_warp<kMostWarpTiles / 32>(p, tiles.reach, smem.order);
    }
    values.order = smem.order;
    values.ordered = tiles.reach;
    select_by_order<Config, Hooks>(args, row, values, tiles.visible, smem.words,
                                   kMostWarpTiles / 32, warp);
  } else {
    select_by_index<Config, Hooks>(args, row, values, tiles.visible, warp);
  }
  __syncwarp();
}

}  // namespace lacuna
