// Pairs of f32 rounded to nearest even and packed as the matrix instructions read them, the first
// value in the low bits; and back.
#pragma once

#include "base/types.cuh"

namespace lacuna {

template <class Element>
__device__ __forceinline__ u32 pack(float low, float high);

template <>
__device__ __forceinline__ u32 pack<bf16>(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

template <>
__device__ __forceinline__ u32 pack<f16>(float low, float high) {
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

template <class Element>
__device__ __forceinline__ float unpack_low(u32 pair);
template <class Element>
__device__ __forceinline__ float unpack_high(u32 pair);

template <>
__device__ __forceinline__ float unpack_low<bf16>(u32 pair) {
  return __uint_as_float(pair << 16);
}
template <>
__device__ __forceinline__ float unpack_high<bf16>(u32 pair) {
  return __uint_as_float(pair & 0xffff0000u);
}
template <>
__device__ __forceinline__ float unpack_low<f16>(u32 pair) {
  float value;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}"
      : "=f"(value)
      : "r"(pair));
  return value;
}
template <>
__device__ __forceinline__ float unpack_high<f16>(u32 pair) {
  float value;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high;}"
      : "=f"(value)
      : "r"(pair));
  return value;
}

/// Of each half the larger magnitude of two pairs; NaN is left out.
template <class Element>
__device__ __forceinline__ u32 larger_magnitudes(u32 magnitudes, u32 pair);

template <>
__device__ __forceinline__ u32 larger_magnitudes<bf16>(u32 magnitudes, u32 pair) {
  asm("{.reg .b32 own; abs.bf16x2 own, %1; max.bf16x2 %0, %0, own;}"
      : "+r"(magnitudes)
      : "r"(pair));
  return magnitudes;
}
template <>
__device__ __forceinline__ u32 larger_magnitudes<f16>(u32 magnitudes, u32 pair) {
  asm("{.reg .b32 own; abs.f16x2 own, %1; max.f16x2 %0, %0, own;}" : "+r"(magnitudes) : "r"(pair));
  return magnitudes;
}

/// Of each half the smaller, the larger of two pairs; NaN wins.
template <class Element>
__device__ __forceinline__ u32 smaller_pair(u32 a, u32 b);
template <class Element>
__device__ __forceinline__ u32 larger_pair(u32 a, u32 b);

template <>
__device__ __forceinline__ u32 smaller_pair<bf16>(u32 a, u32 b) {
  asm("min.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
template <>
__device__ __forceinline__ u32 larger_pair<bf16>(u32 a, u32 b) {
  asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
template <>
__device__ __forceinline__ u32 smaller_pair<f16>(u32 a, u32 b) {
  asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
template <>
__device__ __forceinline__ u32 larger_pair<f16>(u32 a, u32 b) {
  asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}

/// Two codes of e4m3 in the low 16 bits as a pair of f16, which holds all of them (sm_89 and
/// newer).
__device__ __forceinline__ u32 unpack_e4m3x2(u32 codes) {
  u32 pair;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, low;}"
      : "=r"(pair)
      : "r"(codes));
  return pair;
}

/// Two values as e4m3 in the low 16 bits, saturating at 448 (sm_89 and newer).
__device__ __forceinline__ u32 pack_e4m3x2(float low, float high) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ __forceinline__ u32 pack_e4m3x4(float first, float second, float third, float fourth) {
  u32 quad;
  asm("{\n.reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}\n"
      : "=r"(quad)
      : "f"(first), "f"(second), "f"(third), "f"(fourth));
  return quad;
}

}  // namespace lacuna
