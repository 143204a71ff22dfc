// Rows of consecutive tokens in the registers of a block, for kernels that read a tensor once and
// use every element several times.
//
// Neighbouring lanes hold neighbouring 16-byte chunks of a row; a warp owns kRowsPerWarp
// consecutive rows and reads kRowsPerPass of them in each pass.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/attend_args.cuh"

namespace lacuna {

template <int kHeadDim, int kTokens, int kThreads>
struct TokenLayout {
  static constexpr int kChunks = kHeadDim / 8;  ///< of 8 elements
  static constexpr int kLanesPerRow = smaller(32, power_of_two_factor(kChunks));
  static constexpr int kSteps = kChunks / kLanesPerRow;  ///< chunks of a row that one lane holds
  static constexpr int kRowsPerPass = 32 / kLanesPerRow;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kPasses = ceil_div(kTokens, kWarps* kRowsPerPass);
  static constexpr int kRowsPerWarp = kPasses * kRowsPerPass;
  /// Of all warps; more than kTokens where a pass of all warps is longer than the block.
  static constexpr int kRows = kRowsPerWarp * kWarps;
  static_assert(kHeadDim % 32 == 0, "rows are whole chunks for at least four lanes");

  /// This lane's row of the first pass; each pass goes on by kRowsPerPass.
  __device__ __forceinline__ static int first_row() {
    return warp_index() * kRowsPerWarp + lane_index() / kLanesPerRow;
  }
  /// First column of this lane's chunk.
  __device__ __forceinline__ static int column(int step) {
    return (lane_index() % kLanesPerRow + step * kLanesPerRow) * 8;
  }
  /// Over the lanes of a row; equal in all of them.
  __device__ __forceinline__ static float row_sum(float x) {
#pragma unroll
    for (int lanes = 1; lanes < kLanesPerRow; lanes *= 2) x += __shfl_xor_sync(kAllLanes, x, lanes);
    return x;
  }
  __device__ __forceinline__ static float row_max(float x) {
#pragma unroll
    for (int lanes = 1; lanes < kLanesPerRow; lanes *= 2) {
      x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lanes));
    }
    return x;
  }

  /// Which pass this lane has the result of, of reduce_rows.
  __device__ __forceinline__ static int own_pass() {
    return lane_index() % kLanesPerRow / kLanesPerPass;
  }
  /// One number for each pass, reduced over the lanes of its row: each lane gets that of its own
  /// pass. In each step a lane hands over the passes of the lanes on the other side, so that there
  /// are as many exchanges as passes, and not as many for each.
  template <int kCount = kPasses, int kLanes = kLanesPerRow, class Merge>
  __device__ __forceinline__ static float reduce_rows(float (&values)[kPasses], Merge merge) {
    static_assert(kLanesPerPass * kPasses == kLanesPerRow && (kCount == 1 || kCount % 2 == 0),
                  "no more passes than lanes of a row, and both powers of two");
    constexpr int kHalf = kCount / 2;
    if constexpr (kLanes > 1) {
      const bool upper = (lane_index() & kLanes / 2) != 0;
      if constexpr (kCount == 1) {
        values[0] = merge(values[0], __shfl_xor_sync(kAllLanes, values[0], kLanes / 2));
      }
#pragma unroll
      for (int n = 0; n < kHalf; ++n) {
        const float given = upper ? values[n] : values[n + kHalf];
        const float own = upper ? values[n + kHalf] : values[n];
        values[n] = merge(own, __shfl_xor_sync(kAllLanes, given, kLanes / 2));
      }
      return reduce_rows<(kHalf > 0 ? kHalf : 1), kLanes / 2>(values, merge);
    }
    return values[0];
  }
  /// From the lanes that have it to all lanes of its row.
  __device__ __forceinline__ static float of_pass(float reduced, int pass) {
    const int first_lane = lane_index() & ~(kLanesPerRow - 1);
    return __shfl_sync(kAllLanes, reduced, first_lane + pass * kLanesPerPass);
  }

 private:
  static constexpr int kLanesPerPass = kLanesPerRow / kPasses;  ///< that have its result
};

/// The address of an element; rows are contiguous.
template <class Element>
__device__ __forceinline__ Element* element_of(const TensorArg& x, int b, int h, int token,
                                               int column) {
  return static_cast<Element*>(x.data) + b * x.stride_b + h * x.stride_h + token * x.stride_n +
         column;
}

/// 16 bytes of 16-bit elements as f32.
template <class Element>
__device__ __forceinline__ void unpack_chunk(float (&x)[8], const uint4& chunk) {
  const u32 pairs[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    x[2 * pair] = unpack_low<Element>(pairs[pair]);
    x[2 * pair + 1] = unpack_high<Element>(pairs[pair]);
  }
}

/// Eight consecutive f32, 32-byte aligned.
__device__ __forceinline__ void load_floats(float (&x)[8], const float* source) {
  const float4 low = *reinterpret_cast<const float4*>(source);
  const float4 high = *reinterpret_cast<const float4*>(source + 4);
  x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
  x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

}  // namespace lacuna
