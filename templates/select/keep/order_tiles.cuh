// The tiles of a row by descending p, ties by index: what `rank` and `mass_before` count along. By
// counting digits, so that a row of 128k columns takes no longer for each of its tiles than one of
// 128, and ties (thousands of zeros) cost nothing; deterministic, by one team of threads.
//
// Loops over tiles are not unrolled: atomics, barriers and votes keep their rounds apart anyway,
// and the copies are a good part of the time that a predictor takes to compile.
#pragma once

#include "arch/warp.cuh"
#include "select/keep/team.cuh"

namespace lacuna {

/// Shared memory of order_tiles.
template <int kWarps>
struct OrderScratch {
  static constexpr int kDigits = 256;
  int places[kWarps][kDigits];  ///< tiles of a digit in a warp's part of the row, then their place
  ReduceScratchOf<kWarps> reduce;
};

/// Ascends as p descends; NaN last. Both zeros are one.
__device__ __forceinline__ u32 descending_key(float p) {
  if (p != p) return 0xffffffffu;
  const u32 bits = __float_as_uint(p + 0.0f);
  return (bits & 0x80000000u) != 0 ? bits : ~(bits | 0x80000000u);
}

/// The lanes that vote for the same digit as this one; none for lanes that do not take part.
__device__ __forceinline__ u32 lanes_of_digit(int digit, bool takes_part) {
  u32 lanes = __ballot_sync(kAllLanes, takes_part);
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool is_set = (digit >> bit & 1) != 0;
    const u32 set = __ballot_sync(kAllLanes, is_set);
    lanes &= is_set ? set : ~set;
  }
  return takes_part ? lanes : 0u;
}

/// One digit of all keys: `from` (null: 0, 1, 2, ...) -> `to`, equal digits in the order they had.
/// False, and nothing written, if all keys share the digit.
template <class Team>
__device__ __forceinline__ bool order_by_digit(const float* p, int count, int shift,
                                               const int* from, int* to,
                                               OrderScratch<Team::kSize / 32>& scratch) {
  constexpr int kThreads = Team::kSize, kWarps = kThreads / 32;
  constexpr int kDigits = OrderScratch<kWarps>::kDigits;
  /// Neighbouring ones that a thread owns.
  constexpr int kOwn = kThreads < kDigits ? kDigits / kThreads : 1;
  static_assert(kThreads >= kDigits || kDigits % kThreads == 0);
  const int thread = thread_index(), warp = warp_index(), lane = lane_index();
  const bool owns_digit = kThreads <= kDigits || thread < kDigits;
  const int part = ceil_div(ceil_div(count, kWarps), 32) * 32;
  const int begin = warp * part, end = smaller(begin + part, count);
  const auto tile_at = [&](int place) { return from == nullptr ? place : from[place]; };
  const auto digit_of = [&](int tile) {
    return static_cast<int>(descending_key(p[tile]) >> shift & 0xffu);
  };
  if (owns_digit) {
#pragma unroll
    for (int n = 0; n < kWarps * kOwn; ++n) scratch.places[n / kOwn][thread * kOwn + n % kOwn] = 0;
  }
  Team::sync();
#pragma unroll 1
  for (int place = begin + lane; place < end; place += 32) {
    atomicAdd(&scratch.places[warp][digit_of(tile_at(place))], 1);
  }
  Team::sync();
  int of_digits = 0, total = 0;
  bool has_all = false;  // one digit
  if (owns_digit) {
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      int of_digit = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) of_digit += scratch.places[w][thread * kOwn + n];
      has_all |= of_digit == count;
      of_digits += of_digit;
    }
  }
  int next = Team::sum_before(of_digits, total, scratch.reduce);
  if (owns_digit) {
#pragma unroll
    for (int n = 0; n < kWarps * kOwn; ++n) {
      int& place = scratch.places[n % kWarps][thread * kOwn + n / kWarps];
      const int of_warp = place;
      place = next;
      next += of_warp;
    }
  }
  if (Team::sync_any(has_all)) return false;
  // Of the round behind this one: memory takes longer than a round.
  int next_tile = begin + lane < end ? tile_at(begin + lane) : 0;
  int next_digit = begin + lane < end ? digit_of(next_tile) : 0;
#pragma unroll 1
  for (int round = begin; round < end; round += 32) {
    const bool takes_part = round + lane < end;
    const int tile = next_tile, digit = next_digit;
    if (round + 32 + lane < end) {
      next_tile = tile_at(round + 32 + lane);
      next_digit = digit_of(next_tile);
    }
    const u32 lanes = lanes_of_digit(digit, takes_part);
    const int ahead = __popc(lanes & ((1u << lane) - 1u));
    int& place = scratch.places[warp][digit];
    if (takes_part) to[place + ahead] = tile;
    __syncwarp();
    if (takes_part && ahead == 0) place += __popc(lanes);
    __syncwarp();
  }
  Team::sync();
  return true;
}

/// Leaves in `order` the tiles 0 .. count - 1 by descending p; `other` is memory of the same size.
template <class Team>
__device__ __forceinline__ void order_tiles(const float* p, int count, int* order, int* other,
                                            OrderScratch<Team::kSize / 32>& scratch) {
  const int* from = nullptr;
  int* to = order;
  for (int shift = 0; shift < 32; shift += 8) {
    if (!order_by_digit<Team>(p, count, shift, from, to, scratch)) continue;
    from = to;
    to = to == order ? other : order;
  }
  if (from != order) {
#pragma unroll 1
    for (int place = thread_index(); place < count; place += Team::kSize) {
      order[place] = from == nullptr ? place : from[place];
    }
    Team::sync();
  }
}

}  // namespace lacuna
