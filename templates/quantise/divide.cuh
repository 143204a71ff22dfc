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

  /// Of a scale that is none of those, from its correctly rounded reciprocal.
  __device__ __forceinline__ Divisor(float scale, float inverse)
      : scale_(scale), inverse_(inverse), factor_(1.0f) {}

  /// Is the scale one of those? Asking once for many numbers saves a multiplication for each.
  __device__ __forceinline__ bool is_tiny() const { return factor_ != 1.0f; }
  __device__ __forceinline__ float inverse() const { return inverse_; }

  template <bool kMayBeTiny = true>
  __device__ __forceinline__ float divide(float x) const {
    const float scaled = kMayBeTiny ? x * factor_ : x;
    const float quotient = scaled * inverse_;
    return fmaf(fmaf(-quotient, scale_, scaled), inverse_, quotient);
  }

 private:
  __device__ __forceinline__ static float factor_of(float scale) {
    return scale < 0x1p-64f ? 0x1p64f : 1.0f;
  }

  float scale_, inverse_, factor_;
};

/// The scale of numbers up to `largest`: correctly rounded too, and without the branches of a
/// division where no digit is lost.
__device__ __forceinline__ float scale_of(float largest, float range) {
  if (largest == 0.0f) return 1.0f;
  if (!(largest > 0x1p-90f && largest < 0x1p120f)) return largest / range;
  const float inverse = 1.0f / range;
  const float quotient = largest * inverse;
  return fmaf(fmaf(-quotient, range, largest), inverse, quotient);
}

/// Eight numbers to eight signed bytes by `round`.
template <class Round>
__device__ __forceinline__ uint2 round_chunk(const float (&x)[8], const Round& round) {
  int values[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) values[e] = round(x[e]);
  return {pack_s8(values[0], values[1], values[2], values[3]),
          pack_s8(values[4], values[5], values[6], values[7])};
}

/// Rounds what a division gave.
struct QuotientRounding {
  static constexpr bool kMayDoubt = false;
  Divisor divisor;

  __device__ __forceinline__ uint2 round(const float (&x)[8], u32&) const {
    return round_chunk(x, [&](float e) { return round_half_away(divisor.divide(e)); });
  }
};

/// A few ulp: more than reciprocal, quotient and product are off together.
inline constexpr int kReciprocalMargin = 4;

/// The same by two products, with reciprocals a little too small and too large, between whose
/// roundings that of the quotient lies: where they differ, `doubts` has bits. Not for tiny scales.
class BracketRounding {
 public:
  static constexpr bool kMayDoubt = true;
  __device__ __forceinline__ explicit BracketRounding(const Divisor& divisor)
      : low_(__int_as_float(__float_as_int(divisor.inverse()) - kReciprocalMargin)),
        high_(__int_as_float(__float_as_int(divisor.inverse()) + kReciprocalMargin)) {}

  __device__ __forceinline__ uint2 round(const float (&x)[8], u32& doubts) const {
    const uint2 low = round_chunk(x, [&](float e) { return round_to_nearest(e * low_); });
    const uint2 high = round_chunk(x, [&](float e) { return round_to_nearest(e * high_); });
    doubts |= low.x ^ high.x;
    doubts |= low.y ^ high.y;
    return high;
  }

 private:
  float low_, high_;
};

/// The same for 16-bit elements by one product: x / scale = range * x / largest is either half an
/// odd number or, for 8 or 11 bits of x and of `largest`, at least 2^-19 of itself away from that.
/// So it suffices that the reciprocal takes halves to the side on which the division leaves them.
/// Halves are x = largest / 2, and where `scale` is exact others too, all of which then go up. Not
/// for tiny scales.
class ElementRounding {
 public:
  static constexpr bool kMayDoubt = false;
  __device__ __forceinline__ ElementRounding(const Divisor& divisor, float largest, float range) {
    const bool rounds_up = divisor.divide<false>(0.5f * largest) >= 0.5f * range;
    inverse_ = __int_as_float(__float_as_int(divisor.inverse()) +
                              (rounds_up ? kReciprocalMargin : -kReciprocalMargin));
  }

  __device__ __forceinline__ uint2 round(const float (&x)[8], u32&) const {
    return round_chunk(x, [&](float e) { return round_to_nearest(e * inverse_); });
  }

 private:
  float inverse_;
};

}  // namespace lacuna
