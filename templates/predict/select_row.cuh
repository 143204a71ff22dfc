// `keep` for every tile of a row, and the row's bits. A whole block takes a row.
//
// Without rank and mass a warp decides 32 tiles, one word of bits, at once. With them the block
// goes along the row by descending p and counts and sums what is visible; there each tile sets its
// own bit, in shared memory where the row is short enough.
//
// Loops along the row are not unrolled: most are over in a few turns, and copies of `keep` and of
// the mask are what takes time to compile.
#pragma once

#include "predict/block_reduce.cuh"
#include "predict/keep_row.cuh"
#include "predict/order_tiles.cuh"

namespace lacuna {

template <class Config>
inline constexpr bool kUsesOrder = Config::kUsesRank || Config::kUsesMass;

/// Shared memory of select_row.
struct SelectScratch {
  static constexpr int kWords = 128;
  ReduceScratch reduce;
  unsigned words[kWords];
};

/// What is known of the tiles of a row, by tile; null where `keep` does not read it.
struct RowValues {
  const float* p = nullptr;
  const float* score = nullptr;
  const int* order = nullptr;  ///< by descending p; for rank and mass
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ int count_visible(const Args& args, const KeepRow& row,
                                             ReduceScratch& scratch) {
  if constexpr (!Config::kHasMask) return args.predict.keep_k_tiles;
  int visible = 0;
#pragma unroll 1
  for (int j = thread_index(); j < args.predict.keep_k_tiles; j += Config::kThreads) {
    visible += sees_tile<Config, Hooks>(args, row, j);
  }
  return block_sum<Config::kThreads>(visible, scratch);
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_by_index(const Args& args, const KeepRow& row,
                                                const RowValues& values, int visible) {
  unsigned* const kept = kept_words(args, row);
#pragma unroll 1
  for (int word = warp_index(); word < args.predict.keep_words; word += Config::kThreads / 32) {
    const int j = word * 32 + lane_index();
    bool keep = j < args.predict.keep_k_tiles && sees_tile<Config, Hooks>(args, row, j);
    if (keep) {
      TileValue value;
      if (values.p != nullptr) value.p = values.p[j];
      if (Config::kUsesScore && values.score != nullptr) value.score = values.score[j];
      keep = keeps_tile<Config, Hooks>(args, row, j, value, visible);
    }
    const u32 bits = __ballot_sync(kAllLanes, keep);
    if (lane_index() == 0) kept[word] = bits;
  }
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_by_order(const Args& args, const KeepRow& row,
                                                const RowValues& values, int visible,
                                                SelectScratch& scratch) {
  const int words = args.predict.keep_words, tiles = args.predict.keep_k_tiles;
  unsigned* const kept = kept_words(args, row);
  unsigned* const bits = words <= SelectScratch::kWords ? scratch.words : kept;
#pragma unroll 1
  for (int word = thread_index(); word < words; word += Config::kThreads) bits[word] = 0;
  __syncthreads();
  int visible_before = 0;
  float mass_before = 0.0f;
#pragma unroll 1
  for (int round = 0; round < tiles; round += Config::kThreads) {
    const int place = round + thread_index();
    const int j = place < tiles ? values.order[place] : 0;
    const bool sees = place < tiles && sees_tile<Config, Hooks>(args, row, j);
    TileValue value;
    value.p = sees ? values.p[j] : 0.0f;
    value.rank =
        block_sum_before<Config::kThreads>(static_cast<int>(sees), visible_before, scratch.reduce);
    if constexpr (Config::kUsesMass) {
      value.mass_before = block_sum_before<Config::kThreads>(value.p, mass_before, scratch.reduce);
    }
    if (value.p != value.p) value.rank = 0, value.mass_before = 0.0f;  // no p is larger than NaN
    if (Config::kUsesScore && sees) value.score = values.score[j];
    if (sees && keeps_tile<Config, Hooks>(args, row, j, value, visible)) {
      atomicOr(&bits[j / 32], 1u << j % 32);
    }
  }
  __syncthreads();
  if (bits == kept) return;
#pragma unroll 1
  for (int word = thread_index(); word < words; word += Config::kThreads) kept[word] = bits[word];
  __syncthreads();
}

/// All threads; values were written before a barrier, and may be written again afterwards.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_row(const Args& args, const KeepRow& row,
                                           const RowValues& values, SelectScratch& scratch) {
  const int visible = count_visible<Config, Hooks>(args, row, scratch.reduce);
  if constexpr (kUsesOrder<Config>) {
    select_by_order<Config, Hooks>(args, row, values, visible, scratch);
  } else {
    select_by_index<Config, Hooks>(args, row, values, visible);
    __syncthreads();
  }
}

}  // namespace lacuna
