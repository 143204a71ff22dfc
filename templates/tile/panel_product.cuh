// Scores of one warp by mma.sync, for the few steps of the wgmma family whose scores are wanted a
// second time, after their registers went to the weights and the keys' place to the producer.
#pragma once

#include "arch/copy/ldmatrix.cuh"
#include "arch/multiply/mma.cuh"
#include "arch/warp.cuh"
#include "base/pin.cuh"
#include "tile/key_pairs.cuh"
#include "tile/panel_tile.cuh"

namespace lacuna {

/// The `a` fragment of a warp's 16 query rows, 16 elements from element 16 * step on.
template <class QueryTile>
__device__ __forceinline__ void read_query_fragment(u32 (&a)[4], u32 queries, int warp, int step) {
  const int row = warp * kWarpRows + lane_index() % 16;
  ldmatrix_x4(a, queries + QueryTile::offset(row, 2 * step + lane_index() / 16));
}

/// scores[n] = block n (8 keys) of Q K^T, where `row_of(m)` is key m in global memory: an address,
/// or codes (tile/key_pairs.cuh). One that does not exist counts as zeros.
template <class Element, class QueryTile, int kBlocks, class RowOf, class Finish>
__device__ __forceinline__ void multiply_warp_queries_keys(float (&scores)[kBlocks][4], u32 queries,
                                                           int warp, const RowOf& row_of,
                                                           const Finish& finish) {
  // A lane's part of `b`: of key g of a block, elements 2t, 2t + 1, and the two 8 on. Block by
  // block: few registers count here, not time. Nor do the moves by which all blocks pass through
  // the last place, so that they share one piece of code, which is the time of the compiler.
  int slot = lane_index() / 4;
#pragma unroll 1
  for (int n = 0; n < kBlocks; ++n, slot += 8) {
#pragma unroll
    for (int m = 0; m < kBlocks - 1; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[m][i] = scores[m + 1][i];
    }
    float(&block)[4] = scores[kBlocks - 1];
#pragma unroll
    for (int i = 0; i < 4; ++i) block[i] = 0.0f;
    const auto key = row_of(slot);
    constexpr bool kHasCodes = kIsCoded<decltype(row_of(0))>;
    // Written out: through functions of their own the same reads take more instructions.
    const char* pair = nullptr;
    if constexpr (!kHasCodes) pair = reinterpret_cast<const char*>(key + lane_index() % 4 * 2);
#pragma unroll 1
    for (int step = 0; step < QueryTile::kElements / 16; ++step) {
      u32 a[4];
      read_query_fragment<QueryTile>(a, queries, warp, step);
      u32 b[2] = {0, 0};
      if constexpr (kHasCodes) {
        read_pairs<Element>(b, key, lane_index() % 4 * 2 + step * 16);
      } else if (key != nullptr) {
        b[0] = *reinterpret_cast<const u32*>(pair + step * 32);
        b[1] = *reinterpret_cast<const u32*>(pair + step * 32 + 16);
      }
      mma_m16n8k16<Element>(block, a, b[0], b[1]);
    }
    finish(block, n * 8);
  }
}

}  // namespace lacuna
