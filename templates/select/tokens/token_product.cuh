// Logits of some rows and columns as one warp computes them from swizzled shared memory: exact
// 16-bit products with f32 sums, or integer products.
#pragma once

#include "tile/warp_product.cuh"

namespace lacuna {

template <class Sum, int kBlocks>
__device__ __forceinline__ void clear(Sum (&sums)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = Sum(0);
  }
}

template <int kBlocks>
__device__ __forceinline__ void copy_blocks(float (&to)[kBlocks][4],
                                            const float (&from)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[n][i] = from[n][i];
  }
}

/// sums[set][n] += 16 rows of a set x block n (8 columns)^T; both tiles begin at rows that are
/// multiples of 8. A column is read once for all sets. Bit n of `dims`: step n, 32 bytes, counts.
template <class Element, class QueryTile, class KeyTile, class Sum, int kSets, int kBlocks>
__device__ __forceinline__ void add_products_of_sets(Sum (&sums)[kSets][kBlocks][4], u32 rows,
                                                     u32 columns, u32 dims = ~0u) {
  static_assert(kBlocks % 2 == 0 && QueryTile::kRowBytes == KeyTile::kRowBytes);
  const int l = lane_index();
  const LaneAddress<QueryTile> row(rows, l % 16, l / 16);
  // Matrices of one load: columns 0-7 and 8-15 (outer), elements of a row (inner).
  const LaneAddress<KeyTile> column(columns, l % 8 + l / 16 * 8, l / 8 % 2);
#pragma unroll 8
  for (int step = 0; step < QueryTile::kRowBytes / 32; ++step) {
    if ((dims >> step & 1u) == 0) continue;
    u32 a[kSets][4];
#pragma unroll
    for (int set = 0; set < kSets; ++set) ldmatrix_x4(a[set], row.at(set, step));
#pragma unroll
    for (int n = 0; n < kBlocks / 2; ++n) {
      u32 b[4];
      ldmatrix_x4(b, column.at(n, step));
#pragma unroll
      for (int set = 0; set < kSets; ++set) {
        multiply_add<Element>(sums[set][2 * n], a[set], b[0], b[1]);
        multiply_add<Element>(sums[set][2 * n + 1], a[set], b[2], b[3]);
      }
    }
  }
}

/// The same of 16 rows.
template <class Element, class QueryTile, class KeyTile, class Sum, int kBlocks>
__device__ __forceinline__ void add_products(Sum (&sums)[kBlocks][4], u32 rows, u32 columns,
                                             u32 dims = ~0u) {
  using OneSet = Sum[1][kBlocks][4];
  add_products_of_sets<Element, QueryTile, KeyTile>(reinterpret_cast<OneSet&>(sums), rows, columns,
                                                    dims);
}

}  // namespace lacuna
