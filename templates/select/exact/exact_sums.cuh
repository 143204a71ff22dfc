// The mass of each row's keys, in log2, by wgmma (sm_90a): of all that it sees, or of `reference`
// alone. predict.scores [b, h, q_padded], +inf for rows that take no part in what follows: without
// a key, or with a NaN.
//
// A lane adds up the weights of its own columns, relative to a maximum that lags behind theirs,
// which f32 has room for. It looks for the largest score of a step only if the sum of the step says
// that the scores have outgrown that maximum. Lanes bring their sums together at the end of the
// row.
#pragma once

#include "arch/approx.cuh"
#include "select/exact/exact_producer.cuh"

namespace lacuna {

/// log2 of a sum of exponentials of two, in two parts.
struct LaggingSum {
  /// Of the weights of a step: more has outgrown the maximum.
  static constexpr float kMost = 1152921504606846976.0f;  // 2^60

  float lagging_max = -kInfinity;
  float sum = 0.0f;  ///< of exp2(x - lagging_max)

  /// The maximum rises to `largest`, if that is larger. Returns what is subtracted from then on.
  __device__ __forceinline__ float raise(float largest) {
    const float before = lagging_max;
    lagging_max = fmaxf(before, largest);
    if (lagging_max > before) sum *= exp2_approx(before - lagging_max);
    return lagging_max == -kInfinity ? 0.0f : lagging_max;
  }
  /// Over the lanes of a quad; equal in all of them.
  __device__ __forceinline__ void merge_quad() {
#pragma unroll
    for (int lanes = 1; lanes < 4; lanes *= 2) {
      const float other = __shfl_xor_sync(kAllLanes, lagging_max, lanes);
      const float other_sum = __shfl_xor_sync(kAllLanes, sum, lanes);
      const float offset = raise(other);
      sum += other_sum * (other == -kInfinity ? 1.0f : exp2_approx(other - offset));
    }
  }
  /// +inf of nothing, and if a weight was a NaN.
  __device__ __forceinline__ float offset() const {
    const float x = lagging_max + log2_approx(sum);
    return x > -kInfinity ? x : kInfinity;
  }
};

/// A warpgroup: 64 queries.
template <class Config, class Hooks, class Args, bool kIsReference>
class ExactSums {
  using Warp = ExactWarp<Config, Args>;
  using Shape = typename Warp::Shape;
  using Products = typename Warp::Products;
  using Ring = typename Warp::Ring;

 public:
  using Pairs = ExactPairs<Config, Hooks, Args, kIsReference>;

  __device__ __forceinline__ ExactSums(const Args& args, const ExactSmem<Config>& smem,
                                       const KeepRow& block)
      : warp_(args, smem, block),
        rows_(block),
        to_log2_(args.attend.scale * (Config::kTemperature * kLog2E)) {
    rows_.q0 += warp_.number / 4 * kWarpgroupRows;
    rows_.q1 = smaller(rows_.q0 + kWarpgroupRows - 1, block.q1);
  }

  __device__ __forceinline__ void run() {
    warp_.load_queries();
    using Rows = typename Shape::QueryPanels;
    using Columns = typename Shape::KeyPanels;
    const u32 first = static_cast<u32>(warp_.number / 4 * kWarpgroupRows * kPanelRowBytes);
    const auto queries = Rows::along_rows(uniform_over_warp(warp_.smem.queries() + first));
    LaggingSum sums[2];
    Ring at;
    for (int step = warp_.wait(at); step >= 0; step = warp_.wait(at)) {
      Products scores;
      Warp::template multiply<Rows, Columns>(
          scores, queries, Columns::along_rows(uniform_over_warp(warp_.smem.keys(at.slot()))));
      warp_.release(at);
      at.advance();
      const float to_log2 = hide(scores, step * Shape::kStepKeys);
      add(sums, scores, to_log2);
    }
    store(sums);
  }

 private:
  /// What is left to multiply scores by: 1 where some do not count, which are -inf from then on,
  /// and the others logits.
  __device__ __forceinline__ float hide(Products& scores, int k0) const {
    const Pairs pairs{warp_.args};
    const int k1 = k0 + Shape::kStepKeys - 1, keys = warp_.args.attend.n_k;
    if (rows_.q0 > rows_.q1 || (k1 < keys && pairs.all(rows_, k0, k1))) return to_log2_;
    const auto mask_parts = prepare_mask<Hooks>(warp_.args, rows_.h, rows_.b);
    if constexpr (kIsReference) {
      hide_by_bits(scores, counted(pairs, mask_parts, k0));
      return 1.0f;
    }
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k0 + n * 8 + lane_index() % 4 * 2 + i % 2;
        const bool counts = k < keys && pairs.one(mask_parts, rows_, row() + i / 2 * 8, k);
        scores[n][i] = counts ? scores[n][i] * to_log2_ : -kInfinity;
      }
    }
    return 1.0f;
  }

  /// Bit 4 * n + i: scores[n][i] counts. Two formulas for each of 64 scores at once take more
  /// registers than there are, so this loop is one.
  template <class MaskParts>
  __device__ __forceinline__ unsigned long long counted(const Pairs& pairs,
                                                        const MaskParts& mask_parts, int k0) const {
    unsigned long long bits = 0;
#pragma unroll 1
    for (int n = Shape::kBlocks - 1; n >= 0; --n) {
      u32 of_block = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k0 + n * 8 + lane_index() % 4 * 2 + i % 2;
        const bool counts =
            k < warp_.args.attend.n_k && pairs.one(mask_parts, rows_, row() + i / 2 * 8, k);
        of_block |= (counts ? 1u : 0u) << i;
      }
      bits = bits << 4 | of_block;
    }
    return bits;
  }
  __device__ __forceinline__ void hide_by_bits(Products& scores, unsigned long long bits) const {
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        scores[n][i] = bits >> (4 * n + i) & 1 ? scores[n][i] * to_log2_ : -kInfinity;
    }
  }

  /// What lanes have not outgrown costs one multiplication, exponential and addition a score.
  __device__ __forceinline__ static void add(LaggingSum (&sums)[2], const Products& scores,
                                             float to_log2) {
    const float offset[2] = {sums[0].lagging_max, sums[1].lagging_max};
    float of_step[2];
    add_weights(of_step, scores, to_log2, offset);
    // False of NaN, too, which a first step makes of a maximum of -inf.
    const bool fits = of_step[0] <= LaggingSum::kMost && of_step[1] <= LaggingSum::kMost;
    if (!fits) raise(sums, of_step, scores, to_log2);
#pragma unroll
    for (int r = 0; r < 2; ++r) sums[r].sum += of_step[r];
  }

  __device__ __forceinline__ static void add_weights(float (&of_step)[2], const Products& scores,
                                                     float to_log2, const float (&offset)[2]) {
    of_step[0] = of_step[1] = 0.0f;
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        of_step[i / 2] += exp2_approx(fmaf(scores[n][i], to_log2, -offset[i / 2]));
    }
  }

  __device__ __forceinline__ static void raise(LaggingSum (&sums)[2], float (&of_step)[2],
                                               const Products& scores, float to_log2) {
    float largest[2] = {-kInfinity, -kInfinity}, offset[2];
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) largest[i / 2] = fmaxf(largest[i / 2], scores[n][i] * to_log2);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) offset[r] = sums[r].raise(largest[r]);
    add_weights(of_step, scores, to_log2, offset);
  }

  __device__ __forceinline__ void store(LaggingSum (&sums)[2]) const {
    float* const offsets =
        warp_.args.predict.scores +
        query_head(warp_.args, warp_.block.b, warp_.block.h) * warp_.args.predict.q_padded;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sums[r].merge_quad();
      const int q = row() + 8 * r;
      if (lane_index() % 4 == 0 && q <= warp_.block.q1) offsets[q] = sums[r].offset();
    }
  }

  __device__ __forceinline__ int row() const {
    return rows_.q0 + warp_.number % 4 * kWarpRows + lane_index() / 4;
  }

  const Warp warp_;
  KeepRow rows_;  ///< the warpgroup's; q1 < q0 if there are none
  const float to_log2_;
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_exact_sums(const Args& args) {
  extern __shared__ __align__(1024) unsigned char exact_smem[];
  using Shape = ExactShape<Config>;
  constexpr bool kIsReference = Config::kNormalise == Normalise::kLse;
  static_assert(kIsReference || Config::kNormalise == Normalise::kSoftmax);
  using Sums = ExactSums<Config, Hooks, Args, kIsReference>;
  const ExactSmem<Config> smem{exact_smem};
  if (!has_rows<Config, Shape>(args)) return;
  const KeepRow block = rows_of_block<Config, Shape>(args);
  prepare_exact(smem);
  if (warp_index() < Shape::kWarps) {
    grow_registers<Shape::kConsumerRegisters>();
    Sums(args, smem, block).run();
  } else {
    shrink_registers<Shape::kProducerRegisters>();
    ExactProducer<Config, Args>(args, smem, block).run([&](int k0, int k1) {
      return typename Sums::Pairs{args}.any(block, k0, k1);
    });
  }
}

}  // namespace lacuna
