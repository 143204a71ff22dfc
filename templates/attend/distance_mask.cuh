// Masks with a condition on the distance q - k alone (compiler/expr/parts/mask_parts.hpp) on a
// lane's accumulators. Of a warp's 16 queries and 128 keys there are 143 distances: the lanes ask
// for them in turn, five each, and votes make words of the answers. A score costs the test of a
// bit, which two scores share.
//
// Of distances, counted from that of the warp's last query and first key on, a lane of row g and
// columns c and c + 1 wants, of row g + 8 and block n of keys, 7 - g + c + 8 * n and the next; of
// row g those of the block after. Words moved by 7 - g + c have them at the same places for all
// lanes.
#pragma once

#include "arch/warp.cuh"
#include "attend/key_ranges.cuh"
#include "base/ints.cuh"
#include "base/pin.cuh"
#include "pipeline/lane_rows.cuh"

namespace lacuna {

/// What the condition says of a lane's two rows and kBlocks blocks of 8 keys.
template <int kBlocks>
struct DistanceBits {
  /// Blocks m, of which n is that of block n of the second row, and n + 1 of the first. Each has
  /// two bits: block m those from m / 4 % 4 * 2 on of byte m % 4 of a word, so that four blocks
  /// come from a vote as they are.
  u32 words[ceil_div(kBlocks + 1, 16)];

  /// i: of block n, as scores are counted.
  __device__ __forceinline__ bool of_score(int n, int i) const {
    const int m = n + 1 - i / 2;
    return (words[m / 16] >> (m % 4 * 8 + m / 4 % 4 * 2 + i % 2) & 1u) != 0;
  }
};

/// k: the lane's first key. The keys at which distances are asked for may lie before the first
/// token, or behind the last. They depend on no product, so this can be done while products are
/// under way.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ DistanceBits<kBlocks> distance_bits(const Args& args, const Lane& lane,
                                                               int k, int b) {
  constexpr int kVotes = ceil_div(kBlocks + 1, 4);
  constexpr u32 kOfLane = 0x03030303u;
  const int g = lane_index() / 4, column = lane_index() % 4 * 2;
  const int first_key = k - column + g - (kWarpRows - 1) + lane_index();
  const int before = kWarpRows / 2 - 1 - g + column;
  const auto parts = Hooks::distance_parts(args, lane.h(0), b);
  u32 votes[kVotes + 1];
#pragma unroll
  for (int n = 0; n < kVotes; ++n)
    votes[n] = __ballot_sync(kAllLanes, Hooks::mask_of_distance(args, parts, lane.q(0),
                                                                first_key + n * 32, lane.h(0), b));
  votes[kVotes] = 0;
  DistanceBits<kBlocks> bits = {};
#pragma unroll
  for (int n = 0; n < kVotes; ++n) {
    const u32 of_lane = __funnelshift_r(votes[n], votes[n + 1], before) & kOfLane;
    bits.words[n / 4] |= of_lane << n % 4 * 2;
  }
  for (u32& word : bits.words) pin(word);
  return bits;
}

template <int kBlocks>
__device__ __forceinline__ void apply_distance_bits(float (*scores)[4],
                                                    const DistanceBits<kBlocks>& bits) {
#pragma unroll
  for (int word = 0; word < ceil_div(kBlocks + 1, 16); ++word) {
#pragma unroll
    for (int bit = 0; bit < 32; ++bit) {
      const int m = word * 16 + bit / 8 + bit % 8 / 2 * 4;
      const bool counts = (bits.words[word] >> bit & 1u) != 0;
      if (m < kBlocks && !counts) scores[m][2 + bit % 2] = -kInfinity;
      if (m > 0 && m <= kBlocks && !counts) scores[m - 1][bit % 2] = -kInfinity;
    }
  }
}

/// Do ranges of the lane's rows leave out some of its keys from k on?
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ bool leaves_out_keys(const Args& args, const Lane& lane, int k, int b) {
  constexpr int kWordBlocks = 16;
  bool some = false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const typename Hooks::MaskRow row = ranges_of_row<Hooks>(args, lane, r, b);
#pragma unroll
    for (int first = 0; first < kBlocks; first += kWordBlocks) {
      const u32 all = lane_keys_before(8 * smaller(kBlocks - first, kWordBlocks));
      some = some || (~keys_in_ranges(row, k + first * 8, args.attend.n_k) & all) != 0;
    }
  }
  return some;
}

/// Ranges on scores whose distances count. Most tiles lie in them.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ void apply_ranges_besides(const Args& args, float (*scores)[4],
                                                     const Lane& lane, int k, int b) {
  if (__any_sync(kAllLanes, leaves_out_keys<Hooks, kBlocks>(args, lane, k, b)))
    apply_key_ranges<Hooks, kBlocks>(args, scores, lane, k, b);
}

}  // namespace lacuna
