// Weights of a tile, and their product with its values.
#pragma once

#include "attend/mma/attend_block.cuh"

namespace lacuna {

/// Scores -> packed weights under the raised maxima, and the decay of everything older.
template <class Block>
__device__ __forceinline__ void weigh_tile(Block& at, typename Block::Weights& weights,
                                           float (&decay)[2], const typename Block::Scores& scores,
                                           const float (&tile_max)[2]) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  using Element = typename Block::Element;
  if constexpr (!has_denominator<Config>()) {
    const auto weight = [&](float score) {
      if constexpr (weight_kind<Config>() == WeightKind::kSigmoid)
        return sigmoid_approx(score, at.to_log2);
      else
        return score * at.unit;
    };
#pragma unroll
    for (int step = 0; step < Shape::kKeySteps; ++step)
      weigh_step_plainly<Element>(weights[step], scores, step, weight);
    decay[0] = decay[1] = 1.0f;
    return;
  }
  raise_maxima(at.softmax, decay, tile_max, at.to_log2);
  const float offset[2] = {at.softmax.offset(0, at.to_log2) - Block::kRangeLog2,
                           at.softmax.offset(1, at.to_log2) - Block::kRangeLog2};
#pragma unroll
  for (int step = 0; step < Shape::kKeySteps; ++step) {
    if constexpr (Shape::kHasE4m3Values) {
      weigh_step_e4m3(at.softmax, weights[step], scores, step, offset, at.to_log2);
    } else {
      weigh_step<Element>(at.softmax, weights[step], scores, step, offset, at.to_log2);
    }
  }
}

/// Weights are packed before what follows, not where they are used.
template <class Block>
__device__ __forceinline__ void pin_weights(typename Block::Weights& weights) {
  using Shape = typename Block::Shape;
#pragma unroll
  for (int step = 0; step < Shape::kKeySteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) pin(weights[step][i]);
  }
}

/// The output, complete up to the tile before, follows the maxima; the weights wait for their
/// values.
template <bool kFirst, class Block>
__device__ __forceinline__ void keep_weights(Block& at, const typename Block::Weights& weights,
                                             const float (&decay)[2]) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  if constexpr (!kFirst && has_denominator<Config>()) {
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) at.output[n][i] *= decay[i / 2];
    }
  }
#pragma unroll
  for (int step = 0; step < Shape::kKeySteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) at.weights[step][i] = weights[step][i];
  }
}

/// The product of the t-th visited tile.
template <class Block>
__device__ __forceinline__ void multiply_tile_values(Block& at, int t) {
  using Shape = typename Block::Shape;
  using Element = typename Block::Element;
  using ValueTile = typename Block::ValueTile;
  if constexpr (Shape::kHasE4m3Values) {
    multiply_weights_values_e4m3<ValueTile>(at.output, at.weights, at.value_slot(t));
  } else {
    multiply_weights_values<Element, ValueTile>(at.output, at.weights, at.value_slot(t),
                                                at.first_column());
  }
}

}  // namespace lacuna
