// Fixes where a value is computed. The compiler moves arithmetic out of loops, down to its use, or
// into the terms of another sum. Near the limit of 255 registers that causes spills, so a few
// values are pinned.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// `value` is complete at this point and from here on of unknown origin: what it was made of does
/// not stay in registers, and what is made of it is not formed earlier. Costs no instruction.
__device__ __forceinline__ void pin(u32& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void pin(float& value) { asm volatile("" : "+f"(value)); }
__device__ __forceinline__ void pin(int& value) { asm volatile("" : "+r"(value)); }
template <class T>
__device__ __forceinline__ void pin(T*& value) {
  asm volatile("" : "+l"(value));
}

}  // namespace lacuna
