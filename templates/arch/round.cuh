// f32 to signed bytes.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// To the nearest integer, halves away from zero, for |x| < 2^23; NaN becomes 0. What is added is
/// the float below one half: one half itself would carry the float below it up to 1.
__device__ __forceinline__ int round_half_away(float x) {
  int rounded;
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(rounded) : "f"(x + copysignf(0.49999997f, x)));
  return rounded;
}

/// To the nearest integer, for numbers that are no halves; NaN becomes 0.
__device__ __forceinline__ int round_to_nearest(float x) {
  int rounded;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}

/// Four integers as signed bytes, the first in the low bits; saturating.
__device__ __forceinline__ u32 pack_s8(int first, int second, int third, int fourth) {
  u32 bytes;
  asm("{.reg .b32 high; cvt.pack.sat.s8.s32.b32 high, %4, %3, 0; "
      "cvt.pack.sat.s8.s32.b32 %0, %2, %1, high;}"
      : "=r"(bytes)
      : "r"(first), "r"(second), "r"(third), "r"(fourth));
  return bytes;
}

}  // namespace lacuna
