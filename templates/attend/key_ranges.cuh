// Masks that bound keys (compiler/expr/bounds/key_ranges.hpp) on a lane's accumulators. The ranges
// of a row become a word of bits, and a score costs the test of its bit, whatever the bounds are
// made of. Few instructions matter here: steps that need the mask are rare, so their code comes
// from a slow cache.
#pragma once

#include "attend/weight_kind.cuh"
#include "base/math.cuh"
#include "pipeline/lane_rows.cuh"

namespace lacuna {

/// Of the keys of 16 blocks that a lane has in a row, in order: 0 1 8 9 16 17 .. 120 121 from its
/// first key. Those before `key`, a bit each.
__device__ __forceinline__ u32 lane_keys_before(int key) {
  const int keys = (key >> 3) * 2 + smaller(key & 7, 2);
  const int count = smaller(larger(keys, 0), 32);
  return static_cast<u32>((1ull << count) - 1);
}

/// Which of those keys a row sees; `k`: the lane's first.
template <class Row>
__device__ __forceinline__ u32 keys_in_ranges(const Row& row, int k, int n_k) {
  u32 bits = 0;
#pragma unroll
  for (int x = 0; x < Row::kRanges; ++x) {
    const u32 until = lane_keys_before(smaller(row.last[x], n_k - 1) + 1 - k);
    bits |= Row::kHasFirst[x] ? until & ~lane_keys_before(row.first[x] - k) : until;
  }
  return bits;
}

/// The keys that a lane's two rows see. They depend on no product, so they can be read while
/// products are under way.
template <class Hooks>
struct LaneRanges {
  typename Hooks::MaskRow rows[2];
};
/// In place of LaneRanges: they are read when they are needed.
struct UnreadRanges {};

template <class Hooks, class Args, class Lane>
__device__ __forceinline__ typename Hooks::MaskRow ranges_of_row(const Args& args, const Lane& lane,
                                                                 int r, int b, UnreadRanges = {}) {
  return Hooks::mask_row(args, lane.q(r), lane.h(r), b);
}
template <class Hooks, class Args, class Lane>
__device__ __forceinline__ typename Hooks::MaskRow ranges_of_row(const Args&, const Lane&, int r,
                                                                 int,
                                                                 const LaneRanges<Hooks>& ranges) {
  return ranges.rows[r];
}

/// Scores of a lane's two queries with kBlocks blocks of 8 keys, of which a lane has keys k + 8 * n
/// and k + 8 * n + 1: those of keys that a row does not see, or that do not exist, get weight 0.
template <class Hooks, int kBlocks, WeightKind kKind = WeightKind::kSoftmax, class Args, class Lane,
          class Ranges = UnreadRanges>
__device__ __forceinline__ void apply_key_ranges(const Args& args, float (*scores)[4],
                                                 const Lane& lane, int k, int b,
                                                 const Ranges& ranges = {}) {
  constexpr int kWordBlocks = 16;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const typename Hooks::MaskRow row = ranges_of_row<Hooks>(args, lane, r, b, ranges);
#pragma unroll
    for (int first = 0; first < kBlocks; first += kWordBlocks) {
      const u32 bits = keys_in_ranges(row, k + first * 8, args.attend.n_k);
#pragma unroll
      for (int n = 0; n < smaller(kBlocks - first, kWordBlocks); ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if ((bits & 1u << (2 * n + i)) == 0) scores[first + n][2 * r + i] = unseen_score<kKind>();
        }
      }
    }
  }
}

}  // namespace lacuna
