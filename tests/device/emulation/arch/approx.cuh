// Stand-in for templates/arch/approx.cuh: exact to rounding, denormals flushed to zero.
#pragma once

namespace lacuna {

inline float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
inline float exp2_approx(float x) { return flush(exp2f(flush(x))); }
inline float log2_approx(float x) { return log2f(flush(x)); }
/// Eleven bits, as the hardware's.
inline float fast_tanh(float x) {
  constexpr unsigned kDropped = 12;
  const unsigned bits = __float_as_uint(tanhf(x)) + (1u << (kDropped - 1));
  return __uint_as_float(bits >> kDropped << kDropped);
}
inline float sqrt_approx(float x) { return sqrtf(flush(x)); }
inline float divide_approx(float a, float b) { return a / b; }
inline float reciprocal_approx(float x) { return flush(1.0f / flush(x)); }

}  // namespace lacuna
