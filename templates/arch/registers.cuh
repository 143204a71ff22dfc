// Where a thread is, from the special registers, and where shared memory is.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// Each call reads the special register, for code that rarely runs: what is computed from it is
/// then computed again instead of being kept in a register from one use to the next.
__device__ __forceinline__ int block_index() {
  u32 index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return static_cast<int>(index);
}
__device__ __forceinline__ int thread_index() {
  u32 index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return static_cast<int>(index);
}

/// The address that cp.async and ldmatrix take.
__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

}  // namespace lacuna
