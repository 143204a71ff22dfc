// Reductions over a warp in one instruction (sm_80 and newer).
#pragma once

#include "base/ints.cuh"
#include "base/ordered_bits.cuh"

namespace lacuna {

/// Maximum over all lanes. Volatile: computed here, not in a branch that reads it.
__device__ __forceinline__ int max_over_lanes(int x) {
  int largest;
  asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(x));
  return largest;
}

/// The same of floats.
__device__ __forceinline__ float max_over_lanes(float x) {
  return float_of_ordered(max_over_lanes(ordered_bits(x)));
}

/// The same in all lanes.
__device__ __forceinline__ int sum_over_lanes(int x) {
  int sum;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(x));
  return sum;
}

/// Bits that any lane has.
__device__ __forceinline__ u32 or_over_lanes(u32 x) {
  u32 together;
  asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(together) : "r"(x));
  return together;
}

}  // namespace lacuna
