// Memory that is asked for before it is read.
#pragma once

namespace lacuna {

/// The 128 bytes around an address of global memory, to the L1 cache: no register waits for them.
__device__ __forceinline__ void prefetch_to_l1(const void* address) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
}

}  // namespace lacuna
