// Stand-in for templates/arch/approx.cuh: exact to rounding, denormals flushed to zero.
#pragma once

namespace lacuna {

inline float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
inline float exp2_approx(float x) { return flush(exp2f(flush(x))); }
inline float log2_approx(float x) { return log2f(flush(x)); }
inline float reciprocal_approx(float x) { return flush(1.0f / flush(x)); }

}  // namespace lacuna
