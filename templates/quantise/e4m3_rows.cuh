// Numbers of e4m3 codes: a number is its code times a scale, rounded once to the element type.
#pragma once

#include "arch/pack.cuh"

namespace lacuna {

template <class Element>
__device__ __forceinline__ u32 numbers_of_two(u32 codes, float scale) {
  const u32 pair = unpack_e4m3x2(codes);
  return pack<Element>(unpack_low<f16>(pair) * scale, unpack_high<f16>(pair) * scale);
}

template <class Element>
__device__ __forceinline__ uint4 numbers_of_eight(u32 low, u32 high, float scale) {
  uint4 made;
  made.x = numbers_of_two<Element>(low & 0xffffu, scale);
  made.y = numbers_of_two<Element>(low >> 16, scale);
  made.z = numbers_of_two<Element>(high & 0xffffu, scale);
  made.w = numbers_of_two<Element>(high >> 16, scale);
  return made;
}

}  // namespace lacuna
