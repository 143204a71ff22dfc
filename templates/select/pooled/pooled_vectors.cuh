// The vectors of a pooled estimate's rows and columns in global memory, and how long they are.
//
// Columns may be bounds of a tile's keys: the smallest of each element, then the largest. Of a
// query's element the larger of its two products is wanted: the product of bounds with a row that
// has the query's negative elements first and then the positive ones.
#pragma once

#include "args/predict_args.cuh"
#include "select/dims.cuh"
#include "select/keep/keep_row.cuh"
#include "select/pooled/kept_summaries.cuh"

namespace lacuna {

template <class Config, class = const bool>
struct PooledVectors {
  static constexpr bool kHasBounds = false;
  static constexpr int kLength = Config::kHeadDim;

  template <class Args>
  __device__ __forceinline__ static const float* columns(const Args& args, int b, int h) {
    return summaries_of_head<Config>(args, key_head(args, b, h), kLength);
  }
  /// Neighbouring elements of a row, float2 or float4, from the mean of its queries; 0 of what is
  /// not compared.
  template <class Some>
  __device__ __forceinline__ static Some row_elements(const float* mean, int column) {
    if (!takes_element<Config>(column)) return {};
    return *reinterpret_cast<const Some*>(mean + column);
  }
};

template <class Config>
struct PooledVectors<Config, decltype(Config::kColumnsAreBounds)> {
  static constexpr bool kHasBounds = true;
  static constexpr int kLength = 2 * Config::kHeadDim;

  template <class Args>
  __device__ __forceinline__ static const float* columns(const Args& args, int b, int h) {
    return summaries_of_head<Config>(args, key_head(args, b, h), kLength);
  }
  template <class Some>
  __device__ __forceinline__ static Some row_elements(const float* mean, int column) {
    const bool is_positive = column >= Config::kHeadDim;
    const int element = is_positive ? column - Config::kHeadDim : column;
    if (!takes_element<Config>(element)) return {};
    return clip(*reinterpret_cast<const Some*>(mean + element), is_positive);
  }

 private:
  __device__ __forceinline__ static float clip(float x, bool is_positive) {
    return is_positive ? fmaxf(x, 0.0f) : fminf(x, 0.0f);
  }
  __device__ __forceinline__ static float2 clip(float2 x, bool is_positive) {
    return {clip(x.x, is_positive), clip(x.y, is_positive)};
  }
  __device__ __forceinline__ static float4 clip(float4 x, bool is_positive) {
    return {clip(x.x, is_positive), clip(x.y, is_positive), clip(x.z, is_positive),
            clip(x.w, is_positive)};
  }
};

}  // namespace lacuna
