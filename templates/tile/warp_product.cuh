// The two products of attention as one warp computes them: 16 rows of scores = Q K^T and
// O += P V, operands from swizzled shared memory, accumulators in registers.
#pragma once

#include "arch/copy/ldmatrix.cuh"
#include "arch/multiply/mma.cuh"
#include "arch/warp.cuh"
#include "base/pin.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

/// c += a b: of 16-bit elements in f32, of int8 in integers.
template <class Element>
__device__ __forceinline__ void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  mma_m16n8k16<Element>(c, a, b0, b1);
}
template <class Element>
__device__ __forceinline__ void multiply_add(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  mma_m16n8k32_s8(c, a, b0, b1);
}

/// The warp's 16 query rows as `a` fragments: kept in registers, or read again for each step where
/// the accumulators leave no room.
template <class Tile, bool kInRegisters>
struct QueryFragments {
  static constexpr int kSteps = Tile::kRowBytes / 32;
  static constexpr int kStepsUnrolled = kInRegisters ? kSteps : 4;
  u32 fragments[kInRegisters ? kSteps : 1][4];
  LaneAddress<Tile> lane;

  __device__ __forceinline__ explicit QueryFragments(u32 warp_rows)
      : lane(warp_rows, lane_index() % 16, lane_index() / 16) {}

  /// Once the queries are there.
  __device__ __forceinline__ void open() {
    if constexpr (kInRegisters) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) ldmatrix_x4(fragments[step], lane.at(0, step));
    }
  }

  /// Before each product, so that its addresses are computed again and not kept in registers.
  __device__ __forceinline__ void begin() {
    if constexpr (!kInRegisters) pin(lane.first);
  }

  __device__ __forceinline__ void read(u32 (&a)[4], int step) const {
    if constexpr (kInRegisters) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = fragments[step][i];
    } else {
      ldmatrix_x4(a, lane.at(0, step));
    }
  }
};

/// sums[n] = origin + block n (8 keys) of Q K^T, for a key tile at `keys`.
template <class Element, class KeyTile, class Queries, class Sum>
__device__ __forceinline__ void multiply_queries_keys(Sum (&sums)[KeyTile::kRows / 8][4],
                                                      Queries& queries, u32 keys,
                                                      Sum origin = Sum(0)) {
  // Matrices of one load: keys 0-7 and 8-15 (outer), bytes 0-15 and 16-31 (inner).
  const int l = lane_index();
  const LaneAddress<KeyTile> lane(keys, l % 8 + l / 16 * 8, l / 8 % 2);
#pragma unroll
  for (int n = 0; n < KeyTile::kRows / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = origin;
  }
  queries.begin();
#pragma unroll Queries::kStepsUnrolled
  for (int step = 0; step < Queries::kSteps; ++step) {
    u32 a[4];
    queries.read(a, step);
#pragma unroll
    for (int n = 0; n < KeyTile::kRows / 16; ++n) {
      u32 b[4];
      ldmatrix_x4(b, lane.at(n, step));
      multiply_add<Element>(sums[2 * n], a, b[0], b[1]);
      multiply_add<Element>(sums[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// output[n] (8 columns each) += P V, for packed weights of 16 keys each and a value tile at
/// `values`, from `first_column` on, a multiple of 64.
template <class Element, class ValueTile, int kColumnBlocks>
__device__ __forceinline__ void multiply_weights_values(
    float (&output)[kColumnBlocks][4], const u32 (&weights)[ValueTile::kRows / 16][4], u32 values,
    int first_column) {
  // Matrices of one load, transposed: keys 0-7 and 8-15 (inner), columns 0-7 and 8-15 (outer).
  // Chunks permute within 128 bytes, so that whole 64 columns are a plain offset.
  const LaneAddress<ValueTile> lane(values + first_column * 2, lane_index() % 16,
                                    lane_index() / 16);
#pragma unroll
  for (int step = 0; step < ValueTile::kRows / 16; ++step) {
#pragma unroll
    for (int n = 0; n < kColumnBlocks / 2; ++n) {
      u32 b[4];
      ldmatrix_x4_transposed(b, lane.at(step, n));
      mma_m16n8k16<Element>(output[2 * n], weights[step], b[0], b[1]);
      mma_m16n8k16<Element>(output[2 * n + 1], weights[step], b[2], b[3]);
    }
  }
}

}  // namespace lacuna
