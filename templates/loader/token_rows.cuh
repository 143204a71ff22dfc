// Rows of consecutive tokens in the registers of a block, for stages that read a tensor once and
// use every element several times.
//
// Neighbouring lanes hold neighbouring 16-byte chunks of a row; a warp owns kRowsPerWarp
// consecutive rows and meets kRowsPerPass of them in each pass.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "kernel/attend_args.cuh"

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
