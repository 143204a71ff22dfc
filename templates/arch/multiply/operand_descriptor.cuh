// How a tile in shared memory is described to wgmma (sm_90a).
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// How the 16-byte chunks of eight rows are permuted, as a descriptor says it.
enum class Swizzle : u32 { k128 = 1u << 30, k64 = 2u << 30 };

/// Where wgmma finds an operand: its address in units of 16 bytes, and the bytes between its 8x8
/// blocks. Steps through a tile change the low word only.
struct OperandDescriptor {
  u32 low, high;

  __device__ __forceinline__ OperandDescriptor(u32 address, int leading, int stride,
                                               Swizzle swizzle = Swizzle::k128)
      : low((address & 0x3ffffu) >> 4 | static_cast<u32>(leading >> 4) << 16),
        high(static_cast<u32>(stride >> 4) | static_cast<u32>(swizzle)) {}

  __device__ __forceinline__ unsigned long long at(int bytes) const {
    unsigned long long word;
    asm("mov.b64 %0, {%1, %2};" : "=l"(word) : "r"(low + static_cast<u32>(bytes >> 4)), "r"(high));
    return word;
  }
};

}  // namespace lacuna
