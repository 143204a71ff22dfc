// End of a work tile in the wgmma family: O through the warpgroup's own queries in shared memory
// and the copy engine, which clips what is past the last token.
#pragma once

#include "arch/copy/stmatrix.cuh"
#include "arch/pack.cuh"
#include "args/attend_maps.cuh"
#include "attend/softmax.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"

namespace lacuna {

/// The warp's 16 rows of O to its rows of `staging`, a tile of 64.
template <class Element, class Tile, int kColumnBlocks>
__device__ __forceinline__ void output_to_smem(u32 staging, int warp,
                                               float (&output)[kColumnBlocks][4],
                                               const float (&sum)[2]) {
  const int lane = lane_index();
  const int row = warp * kWarpRows + lane % 16;
  const float inverse[2] = {1.0f / sum[0], 1.0f / sum[1]};
#pragma unroll
  for (int n = 0; n < kColumnBlocks; n += 2) {
    u32 matrices[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&block)[4] = output[n + i / 2];
      const int r = i % 2;
      const u32 pair = pack<Element>(block[2 * r] * inverse[r], block[2 * r + 1] * inverse[r]);
      matrices[i] = sum[r] == 0.0f ? 0u : pair;
    }
    stmatrix_x4(staging + Tile::offset(row, n + lane / 16), matrices);
  }
}

/// By each warp for itself: the rows of `staging` to O at token `first_row`. The elected thread
/// issues; it has to wait before `staging` is overwritten.
template <class Tile>
__device__ __forceinline__ void store_output(const TensorMap& o, u32 staging, int warp,
                                             int first_row, const WorkTile& row) {
  fence_proxy_async();
  __syncwarp();
  if (elect_one()) {
#pragma unroll
    for (int p = 0; p < Tile::kPanels; ++p) {
      tma_store(o, staging + p * Tile::kPanelBytes + warp * kWarpRows * kPanelRowBytes,
                panel_origin<Tile::kElements>(first_row, p, row.h, row.b));
    }
    tma_store_commit();
  }
}

}  // namespace lacuna
