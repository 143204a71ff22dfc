// The two products of attention on 8-bit operands as one warp computes them: integer scores = Q K^T
// from int8 rows, and O += P V from e4m3 weights and rows of V transposed.
#pragma once

#include "tile/warp_product.cuh"

namespace lacuna {

/// Integer sums start here instead of at 0: read as f32, the bits of a sum of less than 2^22 in
/// magnitude are 1.5 * 2^23 + sum. Undoing that is one subtraction on the ordinary pipe, where a
/// conversion would take the pipe of the exponentials.
inline constexpr int kSumOrigin = 0x4b400000;
__device__ __forceinline__ float sum_as_float(int sum) { return __int_as_float(sum) - 12582912.0f; }

/// sums[n] = kSumOrigin + block n (8 keys) of Q K^T, for an int8 key tile at `keys`.
template <class KeyTile, class Queries>
__device__ __forceinline__ void multiply_queries_keys_s8(int (&sums)[KeyTile::kRows / 8][4],
                                                         Queries& queries, u32 keys) {
  static_assert(127 * 127 * KeyTile::kRowBytes < 1 << 22, "the sum is exact in the f32's mantissa");
  multiply_queries_keys<signed char, KeyTile>(sums, queries, keys, kSumOrigin);
}

/// output[n] (8 columns each) += P V, for packed weights of 32 keys each and a tile at `values`
/// whose rows are columns of V, keys in the order of prepare/value_order.cuh. The tile's product is
/// summed apart, so that what the matrix unit loses of a sum does not grow with the keys.
template <class ValueTile, int kColumnBlocks>
__device__ __forceinline__ void multiply_weights_values_e4m3(
    float (&output)[kColumnBlocks][4], const u32 (&weights)[ValueTile::kRowBytes / 32][4],
    u32 values) {
  // Matrices of one load: columns 0-7 and 8-15 (outer), keys 0-15 and 16-31 (inner).
  const int l = lane_index();
  const LaneAddress<ValueTile> lane(values, l % 8 + l / 16 * 8, l / 8 % 2);
#pragma unroll
  for (int n = 0; n < kColumnBlocks / 2; ++n) {
    float product[2][4] = {};
#pragma unroll
    for (int step = 0; step < ValueTile::kRowBytes / 32; ++step) {
      u32 b[4];
      ldmatrix_x4(b, lane.at(n, step));
      mma_m16n8k32_e4m3(product[0], weights[step], b[0], b[1]);
      mma_m16n8k32_e4m3(product[1], weights[step], b[2], b[3]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      output[2 * n][i] += product[0][i];
      output[2 * n + 1][i] += product[1][i];
    }
  }
}

}  // namespace lacuna
