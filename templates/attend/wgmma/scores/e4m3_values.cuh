// The product with V of the 8-bit consumer: weights of a step as fragments, and how its result
// is added to the output. Other work runs between issue() and complete(); take() packs the next
// weights. When the lagging maximum is raised, follow() and complete() rescale older sums.
#pragma once

#include "arch/multiply/wgmma_8bit.cuh"
#include "arch/pack.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "attend/wgmma/scores/lazy_max.cuh"
#include "attend/wgmma/scores/weight_fragments.cuh"
#include "base/pin.cuh"

namespace lacuna {

/// e4m3: a step's product is summed apart, so that what the tensor core loses of a sum does not
/// grow with the keys. What is older follows the lagging maximum as the output takes a product, for
/// free.
template <class Config, bool kE4m3 = Config::kVBits == 8>
class WeightedValues {
  using Shape = WgmmaShape<Config>;
  using Slot = typename Shape::ValueSlot;
  using Tile = typename Slot::Tile;
  using Output = float[Shape::kColumnBlocks][4];
  static constexpr int kGroupSteps = Shape::kGroupKeys / 32;

 public:
  static constexpr int kStepBlocks = 4;  ///< of 8 keys, that a fragment has
  static constexpr int kSteps = Config::kStepKeys / 8 / kStepBlocks;
  /// log2 of what weights are times, and of how far they may outgrow that: as they are rounded in
  /// relation to the running maximum, not at all.
  static constexpr float kRangeLog2 = kLog2E4m3Range, kSlackLog2 = 0.0f;

  /// The output follows with the next product that it takes, or behind the last.
  template <bool kFirst>
  __device__ __forceinline__ void follow(Output&, const float (&decay)[2]) {
    if constexpr (kFirst) keep(decay);
  }

  /// Of all groups; with a commit.
  __device__ __forceinline__ void issue_all(Output&, u32 values) {
    has_product_ = 1;
    issue_chosen<(1u << Shape::kGroups) - 1>(values);
  }
  /// Of those that a gate lets pass.
  __device__ __forceinline__ void issue(Output&, u32 values,
                                        const bool (&has_weights)[Shape::kGroups]) {
    has_product_ = 0;
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) has_product_ |= static_cast<u32>(has_weights[g]);
    with_chosen_groups(has_weights,
                       [&](auto chosen) { issue_chosen<decltype(chosen)::kValue>(values); });
  }

  /// `decay`: of the product, and all before it, since its weights were found. Where there was
  /// none, zeros are added: behind a branch the additions would not lie among the exponentials that
  /// hide them. The zeros are pinned, or all of the others would be selected instead.
  __device__ __forceinline__ void complete(Output& output, const float (&decay)[2]) {
    fence_accumulator(product_);
    if (Shape::kHasGate && __builtin_expect(has_product_ == 0, false)) {
#pragma unroll
      for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          product_[n][i] = 0.0f;
          pin(product_[n][i]);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[n][i] = fmaf(output[n][i], decay_[i / 2], product_[n][i]);
    }
    keep(decay);
  }

  /// The n-th fragment of the next weights.
  template <class Scores>
  __device__ __forceinline__ void take(const Scores& scores, int n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int block = n % kGroupSteps * 4 + i / 2 * 2, r = i % 2 * 2;
      const float(&low)[4] = scores[n / kGroupSteps][block];
      const float(&high)[4] = scores[n / kGroupSteps][block + 1];
      weights_[n][i] = pack_e4m3x4(low[r], low[r + 1], high[r], high[r + 1]);
      if constexpr (Shape::kHasGate) pin(weights_[n][i]);
    }
  }

 private:
  __device__ __forceinline__ void keep(const float (&decay)[2]) {
    decay_[0] = decay[0];
    decay_[1] = decay[1];
  }

  template <u32 kChosen>
  __device__ __forceinline__ void issue_chosen(u32 values) {
    const auto v = Tile::along_rows(values);
    wgmma_begin();
    bool adds = false;
#pragma unroll
    for (int n = 0; n < kSteps; ++n) {
      if ((kChosen >> n / kGroupSteps & 1) == 0) continue;
      const int offset = n / 2 * Tile::kBytes + Tile::along_step(n % 2);
      wgmma_from_registers_e4m3(product_, weights_[n], v.at(offset), adds);
      adds = true;
    }
    wgmma_commit();
  }

  u32 weights_[kSteps][4];
  float product_[Shape::kColumnBlocks][4];
  float decay_[2];   ///< of all before the product
  u32 has_product_;  ///< 0: of no group
};

/// 16-bit values: added to the output as it is.
template <class Config>
class WeightedValues<Config, false> {
  using Element = typename Config::Element;
  using Shape = WgmmaShape<Config>;
  using Tile = typename Shape::ValueSlot::Tile;
  using Output = float[Shape::kColumnBlocks][4];
  static constexpr int kGroupSteps = Shape::kGroupKeys / 16;

 public:
  static constexpr int kStepBlocks = 2;
  static constexpr int kSteps = Config::kStepKeys / 8 / kStepBlocks;
  static constexpr float kRangeLog2 = 0.0f, kSlackLog2 = WeightRange<Element>::kSlackLog2;

  /// With the first step of a run no product is under way; else what is older follows behind it.
  template <bool kFirst>
  __device__ __forceinline__ void follow(Output& output, const float (&decay)[2]) const {
    if constexpr (kFirst && Shape::kOwnRows) follow_lagging_max(output, decay);
  }

  /// Of all groups; with a commit.
  __device__ __forceinline__ void issue_all(Output& output, u32 values) {
    issue_chosen<(1u << Shape::kGroups) - 1>(output, values);
  }
  /// Of those that a gate lets pass.
  __device__ __forceinline__ void issue(Output& output, u32 values,
                                        const bool (&has_weights)[Shape::kGroups]) {
    with_chosen_groups(
        has_weights, [&](auto chosen) { issue_chosen<decltype(chosen)::kValue>(output, values); });
  }

  __device__ __forceinline__ void complete(Output& output, const float (&decay)[2]) {
    fence_accumulator(output);
    if (__any_sync(kAllLanes, decay[0] != 1.0f || decay[1] != 1.0f))
      follow_lagging_max(output, decay);
  }

  template <class Scores>
  __device__ __forceinline__ void take(const Scores& scores, int n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights_[n][i] = weight_pair<Element>(scores[n / kGroupSteps] + n % kGroupSteps * 2, i);
      if constexpr (Shape::kHasGate) pin(weights_[n][i]);
    }
  }

 private:
  template <u32 kChosen>
  __device__ __forceinline__ void issue_chosen(Output& output, u32 values) {
    const auto v = Tile::across_rows(values);
    wgmma_begin();
#pragma unroll
    for (int n = 0; n < kSteps; ++n) {
      if ((kChosen >> n / kGroupSteps & 1) == 0) continue;
      wgmma_from_registers<Element, Contiguous::kColumns>(output, weights_[n],
                                                          v.at(Tile::across_step(n)), true);
    }
    wgmma_commit();
  }

  u32 weights_[kSteps][4];
};

}  // namespace lacuna
