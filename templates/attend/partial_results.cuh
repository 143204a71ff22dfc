// End of an item of a split work tile (pipeline/split_kv.cuh): O and LSE of its share of the tiles,
// in f32, to the workspace. An item without a tile, or a row that sees nothing in it, has 0 and
// -inf.
#pragma once

#include "args/split_args.cuh"
#include "attend/epilogue.cuh"
#include "pipeline/split_kv.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

/// The warp's 16 rows, of kHeadDim columns in all; arguments as those of write_output and
/// write_lse. Lanes write what they hold: four of them 32 neighbouring bytes.
template <int kHeadDim, class Args, class Rows, int kColumnBlocks>
__device__ __forceinline__ void write_partial_results(const Args& args, const WorkTile& row,
                                                      int share, int first_row, int first_column,
                                                      const float (&output)[kColumnBlocks][4],
                                                      const Rows& rows, const float (&sum)[2],
                                                      float to_log2) {
  const AttendArgs& attend = args.attend;
  const long long head = (static_cast<long long>(share) * attend.n_b + row.b) * attend.n_h + row.h;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int q = first_row + lane_index() / 4 + 8 * r;
    if (q >= attend.n_q) continue;
    const long long token = head * attend.n_q + q;
    float* target = args.split.partial_o + token * kHeadDim + first_column + lane_index() % 4 * 2;
    const bool empty = sum[r] == 0.0f;
    const float inverse = 1.0f / sum[r];
#pragma unroll
    for (int n = 0; n < kColumnBlocks; ++n) {
      const float low = output[n][2 * r] * inverse, high = output[n][2 * r + 1] * inverse;
      *reinterpret_cast<float2*>(target + n * 8) =
          make_float2(empty ? 0.0f : low, empty ? 0.0f : high);
    }
    if (lane_index() % 4 == 0 && first_column == 0)
      args.split.partial_lse[token] = row_lse(rows, r, sum[r], to_log2, 0.0f);
  }
}

}  // namespace lacuna
