// Online softmax of a warp's 16 rows, in the log2 domain. Scores come in `units` (raw products, the
// softmax scale folded into the exponent; natural units behind a score hook).
//
// Safe for -inf: a row that has seen no visible key keeps maximum -inf, takes offset 0 and gains
// nothing. A NaN stays in its row: maxima ignore it, its weights and sum carry it.
#pragma once

#include "arch/approx.cuh"
#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "base/math.cuh"

namespace lacuna {

/// State of rows g and g + 8 of a lane's quad; each lane sums over its own columns.
struct SoftmaxRows {
  float running_max[2] = {-kInfinity, -kInfinity};  ///< in score units
  float sum[2] = {0.0f, 0.0f};                      ///< of weights, this lane's columns

  /// What is subtracted from score * to_log2 to make the largest weight 1.
  __device__ __forceinline__ float offset(int r, float to_log2) const {
    return running_max[r] == -kInfinity ? 0.0f : __fmul_rn(running_max[r], to_log2);
  }
};

/// Weights without a denominator: the row ends like one whose weights add up to 1 over the lanes of
/// a quad, so O is divided by 1, and the shares of a split work tile count alike.
__device__ __forceinline__ void note_plain_sum(SoftmaxRows& rows) {
  rows = {{0.0f, 0.0f}, {0.25f, 0.25f}};
}

template <int kKeyBlocks>
__device__ __forceinline__ void row_maxima(float (&maxima)[2],
                                           const float (&scores)[kKeyBlocks][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = fmaxf(scores[0][2 * r], scores[0][2 * r + 1]);
#pragma unroll
    for (int n = 1; n < kKeyBlocks; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    maxima[r] = quad_max(largest);
  }
}

/// Takes the tile's maxima into the running ones; returns in `decay` what older weights, their sum
/// and the output have to be multiplied by.
__device__ __forceinline__ void raise_maxima(SoftmaxRows& rows, float (&decay)[2],
                                             const float (&tile_max)[2], float to_log2) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    // Both ends of the difference are rounded products, as in the weights: the ratio is exact.
    const float before = __fmul_rn(rows.running_max[r], to_log2);
    rows.running_max[r] = fmaxf(rows.running_max[r], tile_max[r]);
    decay[r] = exp2_approx(before - rows.offset(r, to_log2));
    rows.sum[r] *= decay[r];
  }
}

/// Scores of 16 keys -> weights, packed as the `a` fragment of the product with V.
template <class Element, int kKeyBlocks>
__device__ __forceinline__ void weigh_step(SoftmaxRows& rows, u32 (&weights)[4],
                                           const float (&scores)[kKeyBlocks][4], int step,
                                           const float (&offset)[2], float to_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float(&block)[4] = scores[2 * step + half];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float low = exp2_approx(fmaf(block[2 * r], to_log2, -offset[r]));
      const float high = exp2_approx(fmaf(block[2 * r + 1], to_log2, -offset[r]));
      rows.sum[r] += low + high;
      weights[2 * half + r] = pack<Element>(low, high);
    }
  }
}

/// The same of weights that nothing divides, and that are relative to nothing: `weight` makes each
/// of its score.
template <class Element, int kKeyBlocks, class Weight>
__device__ __forceinline__ void weigh_step_plainly(u32 (&weights)[4],
                                                   const float (&scores)[kKeyBlocks][4], int step,
                                                   const Weight& weight) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float(&block)[4] = scores[2 * step + half];
#pragma unroll
    for (int r = 0; r < 2; ++r)
      weights[2 * half + r] = pack<Element>(weight(block[2 * r]), weight(block[2 * r + 1]));
  }
}

/// 1 / (1 + exp(-score)); 0 of a score of -inf.
__device__ __forceinline__ float sigmoid_approx(float score, float to_log2) {
  return reciprocal_approx(1.0f + exp2_approx(score * -to_log2));
}

/// log2 of what weights are multiplied by before they are rounded to e4m3: of 448, its largest.
inline constexpr float kLog2E4m3Range = 8.80735492205760410744f;

/// Scores of 32 keys -> weights times 448, rounded to e4m3 and packed, keys in the order of
/// prepare/value_order.cuh. `offset` is less by kLog2E4m3Range, so that sums are times 448 too.
template <int kKeyBlocks>
__device__ __forceinline__ void weigh_step_e4m3(SoftmaxRows& rows, u32 (&weights)[4],
                                                const float (&scores)[kKeyBlocks][4], int step,
                                                const float (&offset)[2], float to_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float weight[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float score = scores[4 * step + 2 * half + i / 2][2 * r + i % 2];
        weight[i] = exp2_approx(fmaf(score, to_log2, -offset[r]));
      }
      rows.sum[r] += (weight[0] + weight[1]) + (weight[2] + weight[3]);
      weights[2 * half + r] = pack_e4m3x4(weight[0], weight[1], weight[2], weight[3]);
    }
  }
}

}  // namespace lacuna
