// End of a work tile: divide by the denominator, write O and LSE. Empty rows are 0 and -inf, or the
// sink.
#pragma once

#include "args/attend_args.cuh"
#include "attend/row_ends.cuh"
#include "attend/softmax.cuh"
#include "pipeline/lane_rows.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

/// The warp's 16 rows of O, from `first_column` on, through its own 16 rows of shared memory at
/// `staging` (no longer needed for queries), so that global memory is written in whole 16-byte
/// chunks.
template <class Element, class Tile, int kColumnBlocks>
__device__ __forceinline__ void write_output(const TensorArg& o, int b, int h, int first_row,
                                             int n_q, int first_column, unsigned char* staging,
                                             const float (&output)[kColumnBlocks][4],
                                             const float (&sum)[2]) {
  const int lane = lane_index();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const bool empty = sum[r] == 0.0f;
    const float inverse = 1.0f / sum[r];
    const int row = lane / 4 + 8 * r;
#pragma unroll
    for (int n = 0; n < kColumnBlocks; ++n) {
      const u32 pair = pack<Element>(output[n][2 * r] * inverse, output[n][2 * r + 1] * inverse);
      *reinterpret_cast<u32*>(staging + Tile::offset(row, n) + lane % 4 * 4) = empty ? 0u : pair;
    }
  }
  __syncwarp();
  Element* head = static_cast<Element*>(o.data) + b * o.stride_b + h * o.stride_h + first_column;
#pragma unroll
  for (int n = 0; n < kWarpRows * Tile::kChunks / 32; ++n) {
    const int row = (n * 32 + lane) / Tile::kChunks;
    const int chunk = (n * 32 + lane) % Tile::kChunks;
    if (first_row + row >= n_q) continue;
    Element* target = head + (first_row + row) * o.stride_n + chunk * 8;
    *reinterpret_cast<uint4*>(target) =
        *reinterpret_cast<const uint4*>(staging + Tile::offset(row, chunk));
  }
}

/// Sums of codes -> sums of values; `scales`: of the head's channels.
template <int kColumnBlocks>
__device__ __forceinline__ void scale_channels(float (&output)[kColumnBlocks][4],
                                               const float* scales) {
#pragma unroll
  for (int n = 0; n < kColumnBlocks; ++n) {
    const float2 scale = *reinterpret_cast<const float2*>(scales + n * 8 + lane_index() % 4 * 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) output[n][i] *= i % 2 == 0 ? scale.x : scale.y;
  }
}

/// Logarithm of the sum of exponentials of row r's logits, base 2; `range_log2`: of what the
/// weights in `sum` are times. `rows.offset(r, to_log2)` is what was subtracted.
template <class Rows>
__device__ __forceinline__ float row_log2_sum(const Rows& rows, int r, float sum, float to_log2,
                                              float range_log2) {
  return rows.offset(r, to_log2) - range_log2 + log2_approx(sum);
}

/// The natural one.
template <class Rows>
__device__ __forceinline__ float row_lse(const Rows& rows, int r, float sum, float to_log2,
                                         float range_log2) {
  const float log2_sum = row_log2_sum(rows, r, sum, to_log2, range_log2);
  return sum == 0.0f ? -kInfinity : log2_sum * kLn2;
}

/// Sums of the warp's rows over their keys -> what O is divided by; arguments as of write_lse.
template <class Config, class Hooks, class Args, class Lane, class Rows>
__device__ __forceinline__ void take_sinks(float (&sum)[2], const Args& args, int b,
                                           const Lane& lane, const Rows& rows, float to_log2,
                                           float range_log2) {
  if constexpr (has_sink<Config>()) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sink = Hooks::sink(args, lane.q(r), lane.h(r), b) * kLog2E;
      sum[r] = with_sink(sum[r], sink - (rows.offset(r, to_log2) - range_log2));
    }
  }
}

/// What is written as a row's LSE; `sum`: over its keys alone.
template <class Config, class Hooks, class Args, class Rows>
__device__ __forceinline__ float written_lse(const Args& args, int b, int h, int q,
                                             const Rows& rows, int r, float sum, float to_log2,
                                             float range_log2) {
  if constexpr (has_sink<Config>()) {
    const float of_keys = row_log2_sum(rows, r, sum, to_log2, range_log2);
    const float log2_sum = log2_of_sum(of_keys, Hooks::sink(args, q, h, b) * kLog2E);
    return lse_is_base_2<Config>() ? log2_sum : log2_sum * kLn2;
  } else if constexpr (lse_is_base_2<Config>()) {
    return row_log2_sum(rows, r, sum, to_log2, range_log2);
  } else {
    return row_lse(rows, r, sum, to_log2, range_log2);
  }
}

/// Writes that of the warp's 16 rows.
template <class Config, class Hooks, class Args, class Lane, class Rows>
__device__ __forceinline__ void write_lse(const Args& args, const LseArg& lse, int b,
                                          const Lane& lane, const Rows& rows, const float (&sum)[2],
                                          float to_log2, float range_log2) {
  if (lane_index() % 4 != 0) return;
  float* entry = lse.data + b * lse.stride_b;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (!lane.exists(r, args.attend.n_q)) continue;
    const int q = lane.q(r), h = lane.h(r);
    entry[h * lse.stride_h + q] =
        written_lse<Config, Hooks>(args, b, h, q, rows, r, sum[r], to_log2, range_log2);
  }
}

}  // namespace lacuna
