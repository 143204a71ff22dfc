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

/// The same; what the warp wrote before is seen by who finds the count behind it, if each lane's
/// writes came before a __syncwarp, and such a reader's reads come behind another.
__device__ __forceinline__ u32 take_number_in_order(u32* counter) {
  u32 before;
  asm volatile("atom.global.acq_rel.gpu.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}

}  // namespace lacuna
