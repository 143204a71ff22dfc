// `classify_pairs`: what bounds of a tile leave open, because the mask reads tensors there, its
// pairs say. A block takes 32 neighbouring tiles of a row; each of its warps one after the other.
//
// A warp goes through a tile kRowsAtOnce queries at a time, its lanes along the keys. It leaves the
// tile when it has found a visible pair and a hidden one, so only tiles that are of one kind are
// read in whole: the first kind attend does not visit, the other it visits without a mask. Where
// the mask depends on the distance of query and key alone, it asks about each distance of the tile.
#pragma once

#include "args/pair_args.cuh"
#include "base/mask_pair.cuh"
#include "pipeline/tile_classes.cuh"
#include "pipeline/tile_walk.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

struct TileClass {
  bool visible, full;  ///< some pair, all of them
};

/// Loads of so many queries are under way together.
inline constexpr int kRowsAtOnce = 4;

/// Tiles of a warp; each lane gets the answer. Queries and keys behind the last one of the tile
/// stand for that one, which changes nothing.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ TileClass ask_pairs(const Args& args, const WorkTile& row, int k0,
                                               int k1) {
  constexpr int kKeysOfLane = (Config::kTileK + 31) / 32;
  const auto divisors = prepare_mask<Hooks>(args, row.h, row.b);
  bool some = false, all = true;
#pragma unroll 1
  for (int first = row.q0; first <= row.q1; first += kRowsAtOnce) {
#pragma unroll
    for (int n = 0; n < kKeysOfLane; ++n) {
      const int k = smaller(k0 + n * 32 + lane_index(), k1);
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const int q = smaller(first + r, row.q1);
        const bool visible = sees<Hooks>(args, divisors, q, k, row.h, row.b);
        some = some || visible;
        all = all && visible;
      }
    }
    some = __any_sync(kAllLanes, some) != 0;
    all = __all_sync(kAllLanes, all) != 0;
    if (some && !all) break;
  }
  return {some, all};
}

/// The same of a mask of the distance alone: of each distance one pair, along two edges of the
/// tile.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ TileClass ask_distances(const Args& args, const WorkTile& row, int k0,
                                                   int k1) {
  const auto divisors = prepare_mask<Hooks>(args, row.h, row.b);
  const int keys = k1 - k0, last = row.q1 - row.q0 + keys;
  bool some = false, all = true;
#pragma unroll 1
  for (int first = 0; first <= last && (all || !some); first += 32) {
    const int distance = smaller(first + lane_index(), last), before = smaller(distance, keys);
    const bool visible =
        sees<Hooks>(args, divisors, row.q0 + distance - before, k1 - before, row.h, row.b);
    some = some || __any_sync(kAllLanes, visible) != 0;
    all = all && __all_sync(kAllLanes, visible) != 0;
  }
  return {some, all};
}

/// What bounds and, where these leave it open, pairs say of tile j.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ TileClass classify_tile(const Args& args, const WorkTile& row, int j) {
  const int k0 = j * Config::kTileK;
  const int k1 = smaller(k0 + Config::kTileK, args.attend.n_k) - 1;
  if (j >= args.attend.k_tiles || !Hooks::tile_visible(args, row.q0, row.q1, k0, k1, row.h, row.b))
    return {false, false};
  TileClass found = {true, true};
  if (!Hooks::tile_full(args, row.q0, row.q1, k0, k1, row.h, row.b)) {
    if constexpr (is_of_distance<typename Hooks::MaskRow>()) {
      found = ask_distances<Config, Hooks>(args, row, k0, k1);
    } else {
      found = ask_pairs<Config, Hooks>(args, row, k0, k1);
    }
  }
  found.full = found.full && k1 - k0 == Config::kTileK - 1;
  return found;
}

/// Block = word of a row of tile_classes.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void classify_pairs(const Args& args) {
  constexpr int kWarps = Config::kThreads / 32;
  static_assert(pair_smem_bytes(Config::kThreads) <= Config::kSmemBytes);
  extern __shared__ __align__(1024) unsigned char block_smem[];
  auto* const found = reinterpret_cast<u32*>(block_smem);  // of each warp: visible, full
  const int words = ceil_div(args.attend.k_tiles, 32);
  const int number = block_index() / words, word = block_index() - number * words;
  const int mask = number / args.attend.q_tiles;
  const int heads = Config::kPairsVaryByHead ? args.attend.n_h : 1;
  // Of a batch of sequences there are blocks enough for the longest.
  if (mask >= heads * (Config::kPairsVaryByBatch ? args.attend.n_b : 1)) return;
  const int b = mask / heads, h = mask - b * heads;  // or 0 for all of them
  const WorkTile row =
      work_tile<Config>(args.attend, b * args.attend.n_h + h, number - mask * args.attend.q_tiles);
  const int warp = warp_index();
  u32 visible = 0, full = 0;
#pragma unroll 1
  for (int bit = warp; bit < 32; bit += kWarps) {
    const TileClass tile = classify_tile<Config, Hooks>(args, row, word * 32 + bit);
    visible |= static_cast<u32>(tile.visible) << bit;
    full |= static_cast<u32>(tile.full) << bit;
  }
  if (lane_index() == 0) {
    found[2 * warp] = visible;
    found[2 * warp + 1] = full;
  }
  __syncthreads();
  if (thread_index() > 1) return;
  u32 bits = 0;
  for (int n = 0; n < kWarps; ++n) bits |= found[2 * n + thread_index()];
  class_words<Config>(args, b, h, row.i)[thread_index() * words + word] = bits;
}

}  // namespace lacuna
