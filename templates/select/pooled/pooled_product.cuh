// Dot products of a few f32 query vectors with f32 or 16-bit keys, by one warp, operands straight
// from global memory: the lanes share out the columns, and 32 dot products at a time are summed
// over the lanes so that each lane ends up with one of them.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"

namespace lacuna {

/// sums[n] over all lanes is returned by lane n. In each step a lane hands over the half of its
/// sums that belongs to lanes on the other side.
template <int kHalf = 16>
__device__ __forceinline__ float sum_for_each_lane(float (&sums)[32]) {
  const bool upper = (lane_index() & kHalf) != 0;
#pragma unroll
  for (int n = 0; n < kHalf; ++n) {
    const float given = upper ? sums[n] : sums[n + kHalf];
    const float own = upper ? sums[n + kHalf] : sums[n];
    sums[n] = own + __shfl_xor_sync(kAllLanes, given, kHalf);
  }
  if constexpr (kHalf > 1) return sum_for_each_lane<kHalf / 2>(sums);
  return sums[0];
}

/// kRows vectors of Vectors::kLength in registers; kRows * kKeys == 32. Lane r * kKeys + c has the
/// dot product of row r and key c.
template <class Vectors, int kMeanLength, int kRows>
class PooledRows {
  static constexpr int kLength = Vectors::kLength;

 public:
  static constexpr int kKeys = 32 / kRows;

  __device__ __forceinline__ static int row_of_lane() { return lane_index() / kKeys; }
  __device__ __forceinline__ static int key_of_lane() { return lane_index() % kKeys; }

  /// Of the means from `first` on, [rows, kMeanLength]; those past the last one count as 0.
  __device__ __forceinline__ PooledRows(const float* first, int rows) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        float2 x = {0.0f, 0.0f};
        if (r < rows && has_pair(pair)) {
          x = Vectors::template row_elements<float2>(first + r * kMeanLength, column(pair));
        }
        query_[r][2 * pair] = x.x;
        query_[r][2 * pair + 1] = x.y;
      }
    }
  }

  /// `keys`: kKeys of them from `first` on, one every `stride` elements of Key; those past `last`
  /// stand for it.
  template <class Key>
  __device__ __forceinline__ float multiply(const Key* keys, long long stride, int first,
                                            int last) const {
    return multiply_each([&](int key) { return keys + key * stride; }, first, last);
  }

  /// The same with keys that lie where row_of(number) says: a pointer, or a StoredRow.
  template <class RowOf>
  __device__ __forceinline__ float multiply_each(RowOf row_of, int first, int last) const {
    float sums[32];
#pragma unroll
    for (int c = 0; c < kKeys; ++c) {
      const auto key = row_of(smaller(first + c, last));
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r * kKeys + c] = 0.0f;
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        float2 x = {0.0f, 0.0f};
        if (has_pair(pair)) x = load_pair(key, column(pair));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          float& sum = sums[r * kKeys + c];
          sum = fmaf(query_[r][2 * pair], x.x, sum);
          sum = fmaf(query_[r][2 * pair + 1], x.y, sum);
        }
      }
    }
    return sum_for_each_lane(sums);
  }

 private:
  static constexpr int kPairs = ceil_div(kLength, 64);  ///< of columns that a lane takes
  static_assert(kRows * kKeys == 32 && kLength % 32 == 0);

  __device__ __forceinline__ static int column(int pair) { return 2 * lane_index() + 64 * pair; }
  __device__ __forceinline__ static bool has_pair(int pair) {
    return kLength % 64 == 0 || column(pair) < kLength;
  }
  __device__ __forceinline__ static float2 load_pair(const float* key, int column) {
    return *reinterpret_cast<const float2*>(key + column);
  }
  template <class Row>
  __device__ __forceinline__ static float2 load_pair(const Row& key, int column) {
    using Element = typename Row::Element;
    const u32 pair = key.moved(column).pair();
    return {unpack_low<Element>(pair), unpack_high<Element>(pair)};
  }

  float query_[kRows][2 * kPairs];
};

}  // namespace lacuna
