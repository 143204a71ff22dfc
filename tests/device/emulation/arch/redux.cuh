// Stand-in for templates/arch/redux.cuh.
#pragma once

#include "base/ints.cuh"
#include "base/ordered_bits.cuh"

namespace lacuna {

template <class T>
inline T max_over_lanes(T x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = max(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

inline int sum_over_lanes(int x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  return x;
}

inline u32 or_over_lanes(u32 x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x |= __shfl_xor_sync(~0u, x, lanes);
  return x;
}

}  // namespace lacuna
