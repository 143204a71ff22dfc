// Stand-in for templates/arch/redux.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

template <class T>
inline T max_over_lanes(T x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = std::max(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

inline int ordered_bits(float x) {
  const int bits = __float_as_int(x);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
inline float float_of_ordered(int bits) { return __int_as_float(bits ^ (bits >> 31 & 0x7fffffff)); }

inline u32 or_over_lanes(u32 x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x |= __shfl_xor_sync(~0u, x, lanes);
  return x;
}

}  // namespace lacuna
