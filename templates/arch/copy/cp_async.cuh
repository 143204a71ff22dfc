// Asynchronous copies from global to shared memory (sm_80 and newer): 16 bytes a thread, past L1,
// and single words.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// Copies 16 bytes, or writes 16 zero bytes and reads nothing where `valid` is false.
__device__ __forceinline__ void cp_async_16(u32 target, const void* source, bool valid) {
  const int source_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target),
               "l"(__cvta_generic_to_global(source)), "r"(source_bytes)
               : "memory");
}

/// Copies 4 bytes, through L1.
__device__ __forceinline__ void cp_async_4(u32 target, const void* source) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target),
               "l"(__cvta_generic_to_global(source))
               : "memory");
}

/// Closes the group of all copies issued since the last commit; an empty group is complete.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most the `kPending` newest groups of this thread are still under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace lacuna
