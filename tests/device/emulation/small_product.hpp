// The product that instructions of one warp make: 16 rows by 8 columns.
#pragma once

#include <cstring>

namespace emulation {

/// Four columns at a time in a register, which takes a third of the time; each sum is taken in the
/// order of depth.
template <class T, int kRows, int kDepth, int kColumns>
void multiply(const T (&a)[kRows][kDepth], const T (&b)[kDepth][kColumns],
              T (&c)[kRows][kColumns]) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  static_assert(kColumns == 8);
  Four right[kDepth][2];
  std::memcpy(right, b, sizeof(b));
  for (int row = 0; row < kRows; ++row) {
    Four low = {}, high = {};
    for (int k = 0; k < kDepth; ++k) {
      low += a[row][k] * right[k][0];
      high += a[row][k] * right[k][1];
    }
    std::memcpy(c[row], &low, sizeof(low));
    std::memcpy(c[row] + 4, &high, sizeof(high));
  }
}

}  // namespace emulation
