// Loops over a lane's scores whose body stands in the kernel once, not once for each score. A
// formula of 64 scores in four places of a kernel is else compiled 256 times: one that takes a
// hundred instructions for a score keeps the compiler busy for half a minute.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// body(values, n) for each of kBlocks blocks of four values, kGroup of them at a time: `values`
/// are those of block n and the kGroup - 1 behind it. Registers have no index, so the group whose
/// turn it is moves to the front, and all are back in their places at the end.
template <int kBlocks, int kGroup, class Body>
__device__ __forceinline__ void for_each_group(float (*values)[4], const Body& body) {
  static_assert(kBlocks % kGroup == 0);
#pragma unroll 1
  for (int n = 0; n < kBlocks; n += kGroup) {
    body(values, n);
    if constexpr (kBlocks > kGroup) {
      float done[kGroup][4];
#pragma unroll
      for (int m = 0; m < kGroup; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) done[m][i] = values[m][i];
      }
#pragma unroll
      for (int m = 0; m < kBlocks; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          values[m][i] =
              m + kGroup < kBlocks ? values[m + kGroup][i] : done[m + kGroup - kBlocks][i];
      }
    }
  }
}

}  // namespace lacuna
