// What a spec says about weights, and about the end of a row: a sink, and the base of the LSE.
//
// A sink (attention.sink) is a logit that counts in the denominator alone. It is added once, after
// all keys of the row: by attend, or by `combine` if work tiles are split.
#pragma once

#include "arch/approx.cuh"
#include "attend/weight_kind.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"

namespace lacuna {

LACUNA_OPTIONAL_FIELD(bool, has_sink, kHasSink, false)
LACUNA_OPTIONAL_FIELD(bool, lse_is_base_2, kLseIsBase2, false)
LACUNA_OPTIONAL_FIELD(WeightKind, weight_kind, kWeightKind, WeightKind::kSoftmax)

/// Only a softmax divides the sum of a row's weights, and has weights relative to a maximum.
template <class Config>
constexpr bool has_denominator() {
  return weight_kind<Config>() == WeightKind::kSoftmax;
}

/// A sum of weights, and log2 of the sink's weight -> what outputs are divided by. A row that has
/// seen no key keeps 0, and so its output.
__device__ __forceinline__ float with_sink(float sum, float sink_log2) {
  return sum == 0.0f ? 0.0f : sum + exp2_approx(sink_log2);
}

/// log2(2^a + 2^b), also of infinities.
__device__ __forceinline__ float log2_of_sum(float a, float b) {
  const float largest = fmaxf(a, b);
  const float shift = fabsf(largest) == kInfinity ? 0.0f : largest;
  return shift + log2_approx(exp2_approx(a - shift) + exp2_approx(b - shift));
}

}  // namespace lacuna
