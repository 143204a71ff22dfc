// The tiles of a short row by descending p, ties by index, as select/keep/order_tiles.cuh has it,
// by one warp: sorted in registers, with index and as much of p as fits in one word, so that a warp
// neither waits for another one nor goes through memory.
#pragma once

#include "select/keep/order_tiles.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

__device__ __forceinline__ u32 smaller_word(u32 a, u32 b) { return a < b ? a : b; }
__device__ __forceinline__ u32 larger_word(u32 a, u32 b) { return a < b ? b : a; }

/// Steps of a bitonic network within a lane: from runs of `size` on.
template <int kEach>
__device__ __forceinline__ void merge_in_lane(u32 (&words)[kEach], int size) {
#pragma unroll
  for (int distance = size / 2; distance > 0; distance /= 2) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if ((e & distance) != 0) continue;
      const bool ascends = size == kEach || (e & size) == 0;
      const u32 low = smaller_word(words[e], words[e + distance]);
      const u32 high = larger_word(words[e], words[e + distance]);
      words[e] = ascends ? low : high;
      words[e + distance] = ascends ? high : low;
    }
  }
}

/// Ascending over the warp; lane l ends up with places l * kEach and on. A bitonic network; lanes
/// whose run descends have their words turned around for as long.
template <int kEach>
__device__ __forceinline__ void sort_over_lanes(u32 (&words)[kEach]) {
#pragma unroll
  for (int size = 2; size < kEach; size *= 2) merge_in_lane(words, size);
#pragma unroll 1
  for (int run = 1; run <= 32; run *= 2) {  // lanes
    const u32 turned = (lane_index() & run) == 0 ? 0u : 0xffffffffu;
#pragma unroll
    for (int e = 0; e < kEach; ++e) words[e] ^= turned;
#pragma unroll 1
    for (int lanes = run / 2; lanes > 0; lanes /= 2) {
      const bool is_lower = (lane_index() & lanes) == 0;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const u32 other = __shfl_xor_sync(kAllLanes, words[e], lanes);
        words[e] = is_lower ? smaller_word(words[e], other) : larger_word(words[e], other);
      }
    }
    merge_in_lane(words, kEach);
#pragma unroll
    for (int e = 0; e < kEach; ++e) words[e] ^= turned;
  }
}

/// Neighbours that differ in what the words left out of p.
__device__ __forceinline__ void repair_order(const float* p, int count, int* order) {
  bool swapped = true;
  while (__any_sync(kAllLanes, swapped)) {
    swapped = false;
    for (int parity = 0; parity < 2; ++parity) {
      for (int place = parity + 2 * lane_index(); place + 1 < count; place += 64) {
        const int first = order[place], second = order[place + 1];
        if (descending_key(p[first]) <= descending_key(p[second])) continue;
        order[place] = second;
        order[place + 1] = first;
        swapped = true;
      }
      __syncwarp();
    }
  }
}

/// `count` up to 32 * kEach; `order` has room for that many.
template <int kEach>
__device__ __forceinline__ void order_by_warp(const float* p, int count, int* order) {
  constexpr int kIndexBits = 9;
  static_assert(32 * kEach <= kMostWarpTiles && kMostWarpTiles == 1 << kIndexBits);
  u32 words[kEach];
  u32 lowest = 0xffffffffu, highest = 0;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int tile = e * 32 + lane_index();
    words[e] = tile < count ? descending_key(p[tile]) : 0;
    if (tile < count) {
      lowest = smaller_word(lowest, words[e]);
      highest = larger_word(highest, words[e]);
    }
  }
  lowest = warp_reduce(lowest, smaller_word);
  highest = warp_reduce(highest, larger_word);
  const int bits = highest > lowest ? 32 - __clz(static_cast<int>(highest - lowest)) : 0;
  const int shift = bits > 32 - kIndexBits ? bits - (32 - kIndexBits) : 0;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int tile = e * 32 + lane_index();
    const u32 word = (words[e] - lowest) >> shift << kIndexBits | static_cast<u32>(tile);
    words[e] = tile < count ? word : 0xffffffffu;
  }
  sort_over_lanes(words);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    order[lane_index() * kEach + e] = static_cast<int>(words[e] & (kMostWarpTiles - 1));
  }
  __syncwarp();
  if (shift > 0) repair_order(p, count, order);
}

}  // namespace lacuna
