// Positions and exchanges inside a warp, in the terms of the matrix accumulators: a quad is the
// four lanes that share the rows g and g + 8; the eight quads of a warp hold its 16 rows.
#pragma once

#include "arch/registers.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

inline constexpr u32 kAllLanes = 0xffffffffu;

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x % 32u); }

/// Broadcast from lane 0, so that the compiler knows it to be the same in all lanes.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(kAllLanes, thread_index() / 32, 0);
}

/// `x`, the same in all lanes, in a register that the compiler knows to be: what wgmma wants of the
/// addresses of its operands.
__device__ __forceinline__ u32 uniform_over_warp(u32 x) { return __shfl_sync(kAllLanes, x, 0); }

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// Maximum over the quads, for values that are equal inside each quad.
__device__ __forceinline__ float max_over_quads(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 4));
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 8));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 16));
}

/// Over all lanes, the same in each; `merge` is commutative. A fixed order: the same bits from run
/// to run.
template <class T, class Merge>
__device__ __forceinline__ T warp_reduce(T x, Merge merge) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x = merge(x, __shfl_xor_sync(kAllLanes, x, lanes));
  return x;
}

/// Sums over all lanes of kCount values, a power of two, each in 32 / kCount neighbouring lanes:
/// lane n has that of x[n * kCount / 32]. As warp_reduce adds, with fewer exchanges than one for
/// each value.
template <int kCount>
__device__ __forceinline__ float sum_each_over_lanes(float (&x)[kCount]) {
  int lanes = 16;
#pragma unroll
  for (int count = kCount / 2; count > 0; count /= 2, lanes /= 2) {
    const bool is_upper = (lane_index() & lanes) != 0;
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const float sent = is_upper ? x[n] : x[n + count];
      x[n] = (is_upper ? x[n + count] : x[n]) + __shfl_xor_sync(kAllLanes, sent, lanes);
    }
  }
#pragma unroll
  for (; lanes > 0; lanes /= 2) x[0] += __shfl_xor_sync(kAllLanes, x[0], lanes);
  return x[0];
}

/// The sum of x over this lane and those before it.
template <class T>
__device__ __forceinline__ T inclusive_sum_over_lanes(T x) {
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const T other = __shfl_up_sync(kAllLanes, x, lanes);
    if (lane_index() >= lanes) x += other;
  }
  return x;
}

/// Over those before it alone, and in `up_to` over this one too.
template <class T>
__device__ __forceinline__ T warp_sum_before(T x, T& up_to) {
  up_to = inclusive_sum_over_lanes(x);
  const T before = __shfl_up_sync(kAllLanes, up_to, 1);
  return lane_index() == 0 ? T(0) : before;
}

}  // namespace lacuna
