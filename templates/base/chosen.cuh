// An element of an array in registers, which have no index.
#pragma once

namespace lacuna {

/// values[index]; no instruction where the compiler knows the index, else a select for each value.
template <class T, int kSize>
__device__ __forceinline__ T chosen(const T (&values)[kSize], int index) {
  T value = values[0];
#pragma unroll
  for (int n = 1; n < kSize; ++n) value = index == n ? values[n] : value;
  return value;
}

}  // namespace lacuna
