// Floats as integers of the same order.
#pragma once

namespace lacuna {

/// Of a float that is not NaN; and back.
__device__ __forceinline__ int ordered_bits(float x) {
  const int bits = __float_as_int(x);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
__device__ __forceinline__ float float_of_ordered(int bits) {
  return __int_as_float(bits ^ (bits >> 31 & 0x7fffffff));
}

}  // namespace lacuna
