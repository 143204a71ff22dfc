// Reductions over a warp in one instruction (sm_80 and newer).
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// Maximum over all lanes, here and not where one of them reads it.
__device__ __forceinline__ int max_over_lanes(int x) {
  int largest;
  asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(x));
  return largest;
}

/// The same of floats; x is not NaN. They are ordered like integers once negative ones are turned
/// around.
__device__ __forceinline__ float max_over_lanes(float x) {
  const int bits = __float_as_int(x);
  const int ordered = bits ^ (bits >> 31 & 0x7fffffff);
  int largest;
  asm("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(ordered));
  return __int_as_float(largest ^ (largest >> 31 & 0x7fffffff));
}

}  // namespace lacuna
