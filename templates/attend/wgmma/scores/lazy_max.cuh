// Online softmax of a warpgroup, with a maximum that lags behind that of the row.
//
// Weights are exp2(score - lagging maximum). The lagging maximum is raised, and all that is older
// scaled down, only when a row has outgrown it by more than the format of the weights has room for:
// that costs no digit of a floating-point format, and the output is hardly ever rescaled. The sum
// has the same lagging maximum, so the result is that of any other.
//
// That a row has outgrown its lagging maximum shows in the sum of its new weights, too. So most
// steps look for no maximum at all, and weights that went too far are lowered in place
// (lower_weights): no score is needed twice, unless one rises by more than f32 holds as a weight.
#pragma once

#include "attend/softmax.cuh"
#include "base/types.cuh"

namespace lacuna {

/// How far weights of a format may outgrow 1. kSlackLog2: where maxima are known, a lagging maximum
/// is raised beyond that. kLargestSum: of the weights that a lane adds up in a step without knowing
/// their maxima; about 2^kSlackLog2 for each of up to 64, or more.
template <class Element>
struct WeightRange;

/// Weights are at most 65504.
template <>
struct WeightRange<f16> {
  static constexpr float kSlackLog2 = 8.0f, kLargestSum = 32768.0f;
};

/// The exponents of f32, in which weights are added up: 2^66 for each of 2^20 keys, times values of
/// V up to 2^40, is still finite.
template <>
struct WeightRange<bf16> {
  static constexpr float kSlackLog2 = 60.0f, kLargestSum = 7e19f;
};

/// The maxima of a lane's part of two rows, by several chains, as each step of one waits for the
/// last.
template <int kBlocks>
__device__ __forceinline__ void lane_maxima(float (&maxima)[2], const float (&scores)[kBlocks][4]) {
  float largest[2][4];
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& chain = largest[i / 2][n % 2 * 2 + i % 2];
      chain = n < 2 ? scores[n][i] : fmaxf(chain, scores[n][i]);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    maxima[r] = fmaxf(fmaxf(largest[r][0], largest[r][1]), fmaxf(largest[r][2], largest[r][3]));
  }
}

inline constexpr int kLeastBits = -2147483647 - 1, kNoMaximum = 2147483647;

/// The bits of the larger of both, or `least`, for half the instructions, which take three
/// integers: right if they are those of a maximum (below), which fails where no score is positive,
/// or one is NaN.
template <int kBlocks>
__device__ __forceinline__ int lane_maximum_bits(const float (&scores)[kBlocks][4], int least) {
  constexpr int kChains = 4;
  int largest[kChains] = {least, least, least, least};
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      int& chain = largest[(n * 2 + i / 2) % kChains];
      chain = max(max(chain, __float_as_int(scores[n][i])), __float_as_int(scores[n][i + 1]));
    }
  }
  return max(max(largest[0], largest[1]), max(largest[2], largest[3]));
}
__device__ __forceinline__ bool is_maximum(int bits) {
  return static_cast<u32>(bits) <= 0x7f800000u;
}

/// Those of whole rows.
template <int kBlocks>
__device__ __forceinline__ void row_maxima_wide(float (&maxima)[2],
                                                const float (&scores)[kBlocks][4]) {
  lane_maxima(maxima, scores);
#pragma unroll
  for (int r = 0; r < 2; ++r) maxima[r] = quad_max(maxima[r]);
}

/// State of rows g and g + 8 of a lane's quad; each lane sums over its own columns.
struct LazyMax {
  float lagging_max[2] = {-kInfinity, -kInfinity};  ///< log2; -inf: no key was seen
  float sum[2] = {0.0f, 0.0f};                      ///< of weights

  /// What is subtracted from score * to_log2.
  __device__ __forceinline__ float offset(int r, float = 0) const {
    return lagging_max[r] == -kInfinity ? 0.0f : lagging_max[r];
  }
  /// Does a row of the warp have no lagging maximum yet?
  __device__ __forceinline__ bool any_fresh() const {
    return __any_sync(kAllLanes, lagging_max[0] == -kInfinity || lagging_max[1] == -kInfinity);
  }
};

/// As of SoftmaxRows.
__device__ __forceinline__ void note_plain_sum(LazyMax& rows) {
  rows = {{0.0f, 0.0f}, {0.25f, 0.25f}};
}

/// Has a row of the warp outgrown its lagging maximum? `maxima`: of rows, or of each lane's part of
/// them.
__device__ __forceinline__ bool outgrows(const LazyMax& rows, const float (&maxima)[2],
                                         float to_log2, float slack_log2) {
  const bool outgrown = fmaf(maxima[0], to_log2, -rows.lagging_max[0]) > slack_log2 ||
                        fmaf(maxima[1], to_log2, -rows.lagging_max[1]) > slack_log2;
  return __any_sync(kAllLanes, outgrown);
}

/// Takes maxima into the lagging maximum; returns in `decay` what older weights, their sum and the
/// output have to be multiplied by.
__device__ __forceinline__ void raise_lagging_max(LazyMax& rows, float (&decay)[2],
                                                  const float (&maxima)[2], float to_log2) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float before = rows.lagging_max[r];
    rows.lagging_max[r] = fmaxf(before, __fmul_rn(maxima[r], to_log2));
    decay[r] = exp2_approx(before - rows.offset(r));
    rows.sum[r] *= decay[r];
  }
}

/// Scores of a lane -> weights in place, added to `sum`.
template <int kBlocks>
__device__ __forceinline__ void exponentiate(float (&sum)[2], float (&scores)[kBlocks][4],
                                             const float (&offset)[2], float to_log2) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[n][i] = exp2_approx(fmaf(scores[n][i], to_log2, -offset[i / 2]));
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] += scores[n][2 * r] + scores[n][2 * r + 1];
  }
}

/// The same of scores that are less their lagging maximum already, in log2.
template <int kBlocks>
__device__ __forceinline__ void exponentiate(float (&sum)[2], float (&scores)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[n][i] = exp2_approx(scores[n][i]);
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] += scores[n][2 * r] + scores[n][2 * r + 1];
  }
}

/// Lowers weights of rows that have outgrown their lagging maximum, and raises it: the largest
/// weight of such a row is then 1. Adds the weights to the sums, and returns in `decay` what the
/// output has to be multiplied by. False: a weight is too large (the factor that lowers it would be
/// no normal number, which counts as 0), and nothing has changed.
template <int kBlocks>
__device__ __forceinline__ bool lower_weights(LazyMax& rows, float (&weights)[kBlocks][4],
                                              float (&decay)[2]) {
  float largest[2];
  row_maxima_wide(largest, weights);
  constexpr float kMostLowered = 8.5070592e37f;  // 2^126
  if (__any_sync(kAllLanes, largest[0] >= kMostLowered || largest[1] >= kMostLowered)) return false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float before = rows.lagging_max[r];
    rows.lagging_max[r] = before + log2_approx(fmaxf(largest[r], 1.0f));
    decay[r] = exp2_approx(before - rows.lagging_max[r]);
    rows.sum[r] *= decay[r];
  }
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) weights[n][i] *= decay[i / 2];
#pragma unroll
    for (int r = 0; r < 2; ++r) rows.sum[r] += weights[n][2 * r] + weights[n][2 * r + 1];
  }
  return true;
}

/// Adds a lane's weights of its two rows.
template <int kBlocks>
__device__ __forceinline__ void add_weights(float (&sum)[2], const float (&weights)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] += weights[n][2 * r] + weights[n][2 * r + 1];
  }
}

/// What is older follows a raised lagging maximum; seldom needed.
template <int kBlocks>
__device__ __forceinline__ void follow_lagging_max(float (&values)[kBlocks][4],
                                                   const float (&decay)[2]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[n][i] *= decay[i / 2];
  }
}

}  // namespace lacuna
