// Symmetric integers: x / scale, rounded half away from zero.
#pragma once

#include "arch/round.cuh"

namespace lacuna {

/// The largest integer of 8 or 4 bits; the smallest is its negative.
__host__ __device__ constexpr float integer_range(int bits) { return bits == 8 ? 127.0f : 7.0f; }

/// Division of many numbers by one scale, correctly rounded, so that every executor finds the same
/// integers. Scales whose reciprocal f32 cannot hold are divided as multiples of 2^-64.
class Divisor {
 public:
  Divisor() = default;
  __device__ __forceinline__ explicit Divisor(float scale)
      : scale_(scale * factor_of(scale)), inverse_(1.0f / scale_), factor_(factor_of(scale)) {}

  __device__ __forceinline__ float divide(float x) const {
    const float scaled = x * factor_;
    const float quotient = scaled * inverse_;
    return fmaf(fmaf(-quotient, scale_, scaled), inverse_, quotient);
  }

 private:
  __device__ __forceinline__ static float factor_of(float scale) {
    return scale < 0x1p-64f ? 0x1p64f : 1.0f;
  }

  float scale_, inverse_, factor_;
};

/// Eight numbers to eight signed bytes.
__device__ __forceinline__ uint2 quantise_chunk(const float (&x)[8], const Divisor& divisor) {
  int values[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) values[e] = round_half_away(divisor.divide(x[e]));
  return {pack_s8(values[0], values[1], values[2], values[3]),
          pack_s8(values[4], values[5], values[6], values[7])};
}

}  // namespace lacuna
