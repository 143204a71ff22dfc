// From integer sums of a step to scores of the 8-bit consumer, and what a score is worth.
//
// A score s stands for the logit s * unit + row bias, whose unit is that of its keys: the scales of
// its groups of queries and keys. The multiplication thus costs nothing, as the exponent is worked
// out by one multiply and add anyway. Where keys have a bias each, or a hook is to see the logit,
// scores have the unit 1; the row bias is in them only for a hook.
#pragma once

#include "arch/multiply/wgmma_8bit.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "base/kinds.cuh"

namespace lacuna {

/// Biases of a lane's keys in a step: two of each block of 8.
template <class Config>
using ColumnBiases = float2[Config::kHasColumnBias ? Config::kStepKeys / 8 : 1];

template <class Accumulator>
inline constexpr bool kIsInteger = false;
template <>
inline constexpr bool kIsInteger<int> = true;

template <class Config>
struct ScoreUnits {
  static constexpr bool kByThread = Config::kQkGroup == QuantGroup::kThread;
  /// Keys that share a scale.
  static constexpr int kGroupKeys = kByThread ? 32 : Config::kTileK;
  static constexpr int kGroups = Config::kStepKeys / kGroupKeys;
  static constexpr bool kHasUnitScores = Config::kHasScore || Config::kHasColumnBias;
  static_assert(Config::kQkTileK == Config::kTileK, "groups of keys lie in tiles of the list");

  /// Below it all logits are as good as 0; an underflow to 0 would make NaN of a masked one.
  static constexpr float kLeastScale = 0x1p-100f;

  float scale[kGroups];  ///< of integer products

  /// Of 8 keys that begin 8 * block keys into a step.
  __device__ __forceinline__ float scale_of(int block) const {
    return scale[block * 8 / kGroupKeys];
  }
  __device__ __forceinline__ float unit_of(int block) const {
    return kHasUnitScores ? 1.0f : scale_of(block);
  }
};

__device__ __forceinline__ float larger_of(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ int larger_of(int a, int b) { return max(a, b); }

/// The maxima of a lane's part of two rows in group g, times their units: logits but for what the
/// row adds.
template <class Config, class Accumulator, int kGroupBlocks>
__device__ __forceinline__ void find_logit_maxima(float (&maxima)[2],
                                                  const Accumulator (&scores)[kGroupBlocks][4],
                                                  const ScoreUnits<Config>& units, int g) {
  using Units = ScoreUnits<Config>;
  constexpr int kBlocks =
      Units::kHasUnitScores ? kGroupBlocks : smaller(Units::kGroupKeys / 8, kGroupBlocks);
  maxima[0] = maxima[1] = -kInfinity;
#pragma unroll
  for (int first = 0; first < kGroupBlocks; first += kBlocks) {
    const float unit = units.unit_of(g * kGroupBlocks + first);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      Accumulator largest = larger_of(scores[first][2 * r], scores[first][2 * r + 1]);
#pragma unroll
      for (int n = first + 1; n < first + kBlocks; ++n)
        largest = larger_of(larger_of(largest, scores[n][2 * r]), scores[n][2 * r + 1]);
      maxima[r] = fmaxf(maxima[r], static_cast<float>(largest) * unit);
    }
  }
}

/// Where the scales of keys lie. Those of one shape are an argument, which takes no register; of a
/// batch of sequences each has its own.
template <class Config, bool kIsOfSequence = has_sequence_tiles<Config>()>
struct KeyScales {
  template <class Args>
  __device__ __forceinline__ void begin_row(const Args&, int) {}
  template <class Args>
  __device__ __forceinline__ const float* of(const Args& args) const {
    return args.predict.k_scale;
  }
};
template <class Config>
struct KeyScales<Config, true> {
  const float* scales;
  template <class Args>
  __device__ __forceinline__ void begin_row(const Args& args, int b) {
    scales = prepared_of<Config>(args, args.predict.k_scale, b);
  }
  template <class Args>
  __device__ __forceinline__ const float* of(const Args&) const {
    return scales;
  }
};

/// Scales and biases of int8 queries and keys. Numbering: Quantise in compiler/ir/program.hpp.
template <class Config>
class QuantisedScores {
  using Units = ScoreUnits<Config>;

 public:
  /// `warp`: of those of the work tile; `first_row`: its first query.
  template <class Args>
  __device__ __forceinline__ void begin_row(const Args& args, const WorkTile& row, int warp,
                                            int first_row) {
    const auto& predict = args.predict;
    const long long head = prepared_head<Config>(row.b, row.h, row.n_h);
    constexpr int kTileWarps = Config::kTileQ / kWarpRows;
    int group = row.i;
    if constexpr (Config::kQkGroup == QuantGroup::kWarp) group = row.i * kTileWarps + warp;
    if constexpr (Units::kByThread) group = (row.i * kTileWarps + warp) * 8 + lane_index() / 4;
    const int heads_per_kv = args.attend.heads_per_kv;
    const int head_kv = static_cast<int>(
        prepared_head<Config>(row.b, row.h / heads_per_kv, row.n_h / heads_per_kv));
    first_group_ = head_kv * predict.k_groups + (Units::kByThread ? lane_index() % 4 : 0);
    key_scales_.begin_row(args, row.b);
    query_scale_ =
        prepared_of<Config>(args, predict.q_scale, row.b)[head * predict.q_groups + group];
    if constexpr (Config::kHasRowBias) {
      const float* bias = prepared_of<Config>(args, predict.row_bias, row.b) +
                          head * predict.q_padded + first_row + lane_index() / 4;
      row_bias_[0] = bias[0];
      row_bias_[1] = bias[8];
    }
  }

  /// Asked for under the product, which hides the latency; to be completed behind it.
  template <class Args, class Message>
  __device__ __forceinline__ Units read(const Args& args, const Message& step) const {
    constexpr int kOfTile = Config::kTileK / Units::kGroupKeys;
    Units units;
#pragma unroll
    for (int n = 0; n < Units::kGroups; ++n) {
      const TileRef tile = step.tiles[n / kOfTile];
      int group = (tile.exists() ? tile.index() : 0) * kOfTile + n % kOfTile;
      if constexpr (Units::kByThread) group *= 4;
      units.scale[n] = __ldg(key_scales_.of(args) + first_group_ + group);
    }
    return units;
  }

  __device__ __forceinline__ void complete(Units& units) const {
#pragma unroll
    for (int n = 0; n < Units::kGroups; ++n)
      units.scale[n] = fmaxf(units.scale[n] * query_scale_, Units::kLeastScale);
  }

  __device__ __forceinline__ float row_bias(int r) const {
    return Config::kHasRowBias ? row_bias_[r] : 0.0f;
  }

 private:
  KeyScales<Config> key_scales_;
  int first_group_;  ///< of keys, in all heads' scales
  float query_scale_;
  float row_bias_[2];  ///< of rows g and g + 8
};

}  // namespace lacuna
