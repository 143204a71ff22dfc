// Stand-in for templates/arch/multiply/operand_descriptor.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

enum class Swizzle : u32 { k128 = 1u << 30, k64 = 2u << 30 };

struct OperandDescriptor {
  u32 low, high;

  __device__ __forceinline__ OperandDescriptor(u32 address, int leading, int stride,
                                               Swizzle swizzle = Swizzle::k128)
      : low((address & 0x3ffffu) >> 4 | static_cast<u32>(leading >> 4) << 16),
        high(static_cast<u32>(stride >> 4) | static_cast<u32>(swizzle)) {}

  __device__ __forceinline__ unsigned long long at(int bytes) const {
    return (low + static_cast<u32>(bytes >> 4)) | static_cast<unsigned long long>(high) << 32;
  }
};

}  // namespace lacuna
