// The two rows of a lane in predict_token_softmax: from integer products of a step to logits, and
// what is kept of them while the block walks along the keys.
//
// Logits are in log2. What belongs to a row alone (what smoothing the keys took from it) is left
// out: it is in the row's sum as well, so no weight depends on it.
#pragma once

#include "arch/approx.cuh"
#include "arch/warp.cuh"
#include "base/mask_pair.cuh"
#include "base/math.cuh"
#include "select/token_softmax/token_softmax_shape.cuh"

namespace lacuna {

/// log2 of a sum of exponentials in two parts, over the keys that one lane met.
struct Log2Sum {
  float largest = -kInfinity;
  float sum = 0.0f;  ///< of exp2(logit - largest)

  __device__ __forceinline__ void raise(float logit) {
    const float raised = fmaxf(largest, logit);
    sum *= exp2_approx(largest - shift(raised));
    largest = raised;
  }
  /// What exponents are relative to; 0 in place of -inf, since -inf - -inf is NaN.
  __device__ __forceinline__ float shift() const { return shift(largest); }
  __device__ __forceinline__ static float shift(float largest) {
    return largest == -kInfinity ? 0.0f : largest;
  }
  /// Over the four lanes of a quad; the same in all of them.
  __device__ __forceinline__ void merge_quad() {
#pragma unroll
    for (int lanes = 1; lanes < 4; lanes *= 2) {
      const float other_largest = __shfl_xor_sync(kAllLanes, largest, lanes);
      const float other_sum = __shfl_xor_sync(kAllLanes, sum, lanes);
      const float raised = shift(fmaxf(largest, other_largest));
      sum = sum * exp2_approx(largest - raised) + other_sum * exp2_approx(other_largest - raised);
      largest = fmaxf(largest, other_largest);
    }
  }
  /// inf where no key was met, or a logit was NaN or infinite: such a row takes no part.
  __device__ __forceinline__ float log2() const {
    const float x = largest + log2_approx(sum);
    return x > -kInfinity ? x : kInfinity;
  }
};

/// Of a lane, rows g and g + 8 of its warp's 16.
template <class Config, class Hooks, class Args>
class TokenSoftmaxRows {
  using Shape = TokenSoftmaxShape<Config>;
  using Control = typename Shape::Control;

 public:
  using Sums = int[Shape::kBlocks][4];
  /// Of the lane's keys of a step, by unit.
  struct Scales {
    float of_unit[Shape::kUnits];
  };

  __device__ __forceinline__ TokenSoftmaxRows(const Args& args, const KeepRow& row)
      : args_(args), row_(row), first_(warp_index() * kWarpRows + lane_index() / 4) {
    const PredictArgs& predict = args.predict;
    const long long head = query_head(args, row.b, row.h);
    to_log2_ = args.attend.scale * Config::kTemperature * kLog2E;
    unit_ =
        predict.estimate_q_scale[head * predict.estimate_q_groups + Shape::QueryGroups::of(q(0))] *
        to_log2_;
    k_scale_ = predict.estimate_k_scale + key_head(args, row.b, row.h) * predict.estimate_k_groups +
               Shape::KeyGroups::of(lane_index() % 4 * 2);
  }

  /// Keys past the end have scales that were never written; the mask hides them. `first` is a
  /// multiple of the keys of a group, so the number of the lane's group is that of the groups
  /// before `first` plus its own.
  __device__ __forceinline__ Scales read_scales(int first) const {
    const float* const of_step = k_scale_ + Shape::KeyGroups::of(first);
    Scales scales;
#pragma unroll
    for (int u = 0; u < Shape::kUnits; ++u)
      scales.of_unit[u] = of_step[Shape::KeyGroups::of(u * Shape::kUnitKeys)];
    return scales;
  }

  /// Takes the products of the step that begins at key `first`. Returns by row the largest logit of
  /// a quad.
  __device__ __forceinline__ float2 take(const Sums& sums, const Scales& scales,
                                         const float (&bias)[Shape::kStepKeys], int first) {
    float logits[Shape::kBlocks][4];
    scale(logits, sums, scales, bias);
    if (is_partial(first)) hide(logits, first);
    float largest[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      largest[r] = fmaxf(logits[0][2 * r], logits[0][2 * r + 1]);
#pragma unroll
      for (int n = 1; n < Shape::kBlocks; ++n)
        largest[r] = fmaxf(largest[r], fmaxf(logits[n][2 * r], logits[n][2 * r + 1]));
      rows_[r].raise(largest[r]);
      const float shift = rows_[r].shift();
      float sum[2] = {0.0f, 0.0f};
#pragma unroll
      for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) sum[i] += exp2_approx(logits[n][2 * r + i] - shift);
      }
      rows_[r].sum += sum[0] + sum[1];
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(kAllLanes, largest[r], 1));
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(kAllLanes, largest[r], 2));
    }
    return {largest[0], largest[1]};
  }

  /// The sums of the rows, to shared memory.
  __device__ __forceinline__ void publish(Control& control) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows_[r].merge_quad();
      const bool exists = q(r) <= row_.q1;
      if (lane_index() % 4 == 0)
        control.log2_sum[in_tile(r)] = exists ? rows_[r].log2() : kInfinity;
    }
  }

  /// Row r of the lane in its query tile.
  __device__ __forceinline__ int in_tile(int r) const { return first_ + 8 * r; }

 private:
  __device__ __forceinline__ int q(int r) const { return row_.q0 + in_tile(r); }

  /// scale * (integer * q_scale * k_scale + column_bias).
  __device__ __forceinline__ void scale(float (&logits)[Shape::kBlocks][4], const Sums& sums,
                                        const Scales& scales,
                                        const float (&bias)[Shape::kStepKeys]) const {
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
      const float unit = unit_ * scales.of_unit[n * 8 / Shape::kUnitKeys];
      float2 added = {0.0f, 0.0f};
      if constexpr (Config::kHasColumnBias) {
        added = *reinterpret_cast<const float2*>(&bias[n * 8 + lane_index() % 4 * 2]);
        added.x *= to_log2_, added.y *= to_log2_;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        logits[n][i] = fmaf(static_cast<float>(sums[n][i]), unit, i % 2 == 0 ? added.x : added.y);
      }
    }
  }

  /// Are there keys that some row may not see?
  __device__ __forceinline__ bool is_partial(int first) const {
    const int last = first + Shape::kStepKeys - 1;
    if (last >= args_.attend.n_k) return true;
    if constexpr (!Config::kHasMask) return false;
    return !Hooks::tile_full(args_, row_.q0, row_.q1, first, last, row_.h, row_.b);
  }

  __device__ __forceinline__ void hide(float (&logits)[Shape::kBlocks][4], int first) const {
    const auto divisors = prepare_mask<Hooks>(args_, row_.h, row_.b);
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = first + n * 8 + lane_index() % 4 * 2 + i % 2;
        bool visible = k < args_.attend.n_k;
        if constexpr (Config::kHasMask)
          visible = visible && sees<Hooks>(args_, divisors, q(i / 2), k, row_.h, row_.b);
        if (!visible) logits[n][i] = -kInfinity;
      }
    }
  }

  const Args& args_;
  const KeepRow& row_;
  const int first_;       ///< row 0 of the lane in its query tile
  const float* k_scale_;  ///< of the head, those of the lane
  float to_log2_;         ///< a product of q and k
  float unit_;            ///< an integer product, but for the scale of the keys
  Log2Sum rows_[2];
};

}  // namespace lacuna
