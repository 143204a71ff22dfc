// What a spec says about the end of a row: a sink, and the base of the LSE.
//
// A sink (attention.sink) is a logit that is in the denominator alone. It is counted once, when all
// keys of the row have been: by attend, or where rows are split by `combine`.
#pragma once

#include "arch/approx.cuh"
#include "base/math.cuh"

namespace lacuna {

/// Config::kHasSink; false where a Config does not say. (Functions, because NVRTC keeps a global
/// for each constant of a class.)
template <class Config>
constexpr decltype(Config::kHasSink) has_sink(int) {
  return Config::kHasSink;
}
template <class Config>
constexpr bool has_sink(...) {
  return false;
}

/// Config::kLseIsBase2; false where a Config does not say.
template <class Config>
constexpr decltype(Config::kLseIsBase2) lse_is_base_2(int) {
  return Config::kLseIsBase2;
}
template <class Config>
constexpr bool lse_is_base_2(...) {
  return false;
}

/// Config::kIsSigmoid: weights are sigmoids, and no denominator divides their sum; false where a
/// Config does not say.
template <class Config>
constexpr decltype(Config::kIsSigmoid) is_sigmoid(int) {
  return Config::kIsSigmoid;
}
template <class Config>
constexpr bool is_sigmoid(...) {
  return false;
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
