// What weights are made of scores: attention.normalise.
#pragma once

#include "base/math.cuh"

namespace lacuna {

/// A share of a softmax, 1 / (1 + exp(-score)), or the score itself.
enum class WeightKind { kSoftmax, kSigmoid, kScore };

/// The score whose weight is 0, that of a key that a row does not see.
template <WeightKind kKind>
constexpr float unseen_score() {
  return kKind == WeightKind::kScore ? 0.0f : -kInfinity;
}

}  // namespace lacuna
