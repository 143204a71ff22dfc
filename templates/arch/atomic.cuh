// Counters in global memory that blocks share.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// Adds 1 and returns what was there before; orders no other access.
__device__ __forceinline__ u32 take_number(u32* counter) {
  u32 before;
  asm volatile("atom.global.relaxed.gpu.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}

/// The same, and orders memory: a warp that reads the number after this one sees what this warp
/// wrote before, if there is a __syncwarp between the writes and this call, and another between
/// that warp's call and its reads.
__device__ __forceinline__ u32 take_number_in_order(u32* counter) {
  u32 before;
  asm volatile("atom.global.acq_rel.gpu.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}

/// One thread tries to take something that blocks share. *holder is 0 while nobody has it. True:
/// the caller has it now; the thread, and those that later pass a barrier with it, then see what
/// the holder before has written.
__device__ __forceinline__ bool take_if_free(u32* holder) {
  u32 before;
  asm volatile("atom.global.acquire.gpu.exch.b32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(holder)
               : "memory");
  return before == 0;
}
/// One thread gives it back, behind a barrier with all threads that used it.
__device__ __forceinline__ void give_back(u32* holder) {
  __threadfence();
  asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(holder) : "memory");
}

/// Waits until the counter has come to `number`. Then this thread, and those that later pass a
/// barrier with it, see what the warps that counted so far by take_number_in_order wrote before.
__device__ __forceinline__ void await_number_in_order(const u32* counter, u32 number) {
  u32 now;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
  } while (now < number);
}

}  // namespace lacuna
