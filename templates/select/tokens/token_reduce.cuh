// What estimates make of logits: sums of exponentials along a row, and the reduction of a warp's
// rows to one number for each unit of columns. -inf stands for "none" in both.
#pragma once

#include "arch/approx.cuh"
#include "arch/warp.cuh"
#include "base/math.cuh"

namespace lacuna {

/// ln of a sum of exponentials in two parts, over the columns that one lane met.
struct RowSum {
  float largest = -kInfinity;
  float sum = 0.0f;  ///< of exp(logit - largest)

  __device__ __forceinline__ void merge(float other_largest, float other_sum) {
    const float raised = fmaxf(largest, other_largest);
    if (raised == -kInfinity) {
      sum += other_sum;  // keeps a NaN
      return;
    }
    sum = sum * exp2_approx((largest - raised) * kLog2E) +
          other_sum * exp2_approx((other_largest - raised) * kLog2E);
    largest = raised;
  }
  /// Over so many neighbouring lanes; equal in all of them.
  template <int kLanes>
  __device__ __forceinline__ void merge_lanes() {
#pragma unroll
    for (int lanes = 1; lanes < kLanes; lanes *= 2) {
      merge(__shfl_xor_sync(kAllLanes, largest, lanes), __shfl_xor_sync(kAllLanes, sum, lanes));
    }
  }
  /// log2 of the sum of exp(logit); -inf of nothing, NaN if a logit was.
  __device__ __forceinline__ float log2_sum() const {
    return fmaf(largest, kLog2E, log2_approx(sum));
  }
  /// The largest logit, in log2; -inf of nothing, NaN if a logit was.
  __device__ __forceinline__ float log2_largest() const {
    return sum == sum ? largest * kLog2E : sum;
  }
};

/// Takes rows g and g + 8 of the logits in `scores` into sums[0] and sums[1].
template <int kBlocks>
__device__ __forceinline__ void add_to_row_sums(RowSum (&sums)[2],
                                                const float (&scores)[kBlocks][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = scores[0][2 * r];
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    const float offset = largest == -kInfinity ? 0.0f : largest * kLog2E;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      sum += exp2_approx(fmaf(scores[n][2 * r], kLog2E, -offset)) +
             exp2_approx(fmaf(scores[n][2 * r + 1], kLog2E, -offset));
    }
    sums[r].merge(largest, sum);
  }
}

/// The sum where -inf is the sum of nothing.
__device__ __forceinline__ float add_present(float a, float b) {
  if (a == -kInfinity) return b;
  return b == -kInfinity ? a : a + b;
}

/// How the numbers of a tile become one.
enum class Merge { kLargest, kSum, kSumOfPresent };

template <Merge kMerge>
inline constexpr float kNothing = kMerge == Merge::kSum ? 0.0f : -kInfinity;

template <Merge kMerge>
__device__ __forceinline__ float merge_two(float a, float b) {
  if constexpr (kMerge == Merge::kLargest) return fmaxf(a, b);
  if constexpr (kMerge == Merge::kSum) return a + b;
  return add_present(a, b);
}

/// values[n]: columns 2 t and 2 t + 1 of block n, reduced over this lane's rows -> slots[unit] of
/// the warp's columns, reduced over all its rows.
template <Merge kMerge, int kUnit, int kBlocks>
__device__ __forceinline__ void reduce_units(float* slots, float (&values)[kBlocks][2]) {
  constexpr int kBlocksOfUnit = kUnit <= 8 ? 1 : kUnit / 8;
  constexpr int kNumbers = kUnit == 1 ? 2 : 1;  // that a lane keeps of a block
  const int quad_lane = lane_index() % 4;
#pragma unroll
  for (int first = 0; first < kBlocks; first += kBlocksOfUnit) {
#pragma unroll
    for (int n = first + 1; n < first + kBlocksOfUnit; ++n) {
      values[first][0] = merge_two<kMerge>(values[first][0], values[n][0]);
      values[first][1] = merge_two<kMerge>(values[first][1], values[n][1]);
    }
    if (kUnit >= 2) values[first][0] = merge_two<kMerge>(values[first][0], values[first][1]);
#pragma unroll
    for (int number = 0; number < kNumbers; ++number) {
      float x = values[first][number];
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) {
        if (lanes == 2 && kUnit < 8) continue;
        if (lanes == 1 && kUnit < 4) continue;
        x = merge_two<kMerge>(x, __shfl_xor_sync(kAllLanes, x, lanes));
      }
      const int column = first * 8 + quad_lane * 2 + number;
      if (lane_index() < 4 && column % kUnit == 0) slots[column / kUnit] = x;
    }
  }
}

/// What warps have left in the slots of a tile, as one number.
template <Merge kMerge, int kSlotsOfTile, int kWarps, int kSlots>
__device__ __forceinline__ float merge_parts(const float (&parts)[kWarps][kSlots], int tile) {
  float x = kNothing<kMerge>;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) {
#pragma unroll
    for (int slot = 0; slot < kSlotsOfTile; ++slot) {
      x = merge_two<kMerge>(x, parts[warp][tile * kSlotsOfTile + slot]);
    }
  }
  return x;
}

}  // namespace lacuna
