// From products of int8 queries and keys to those of the numbers that they stand for: times the
// scales of their groups, plus what smoothing took away.
//
// A lane finds every scale that it needs by itself, because a group is the whole tile, the warp's
// 16 rows, or what this lane holds of the accumulators. Numbering: Quantise in
// compiler/ir/program.hpp.
#pragma once

#include "attend/mma/shape.cuh"
#include "pipeline/tile_walk.cuh"
#include "tile/byte_product.cuh"

namespace lacuna {

template <class Config>
class QuantisedLogits {
  using Shape = AttendShape<Config>;
  static constexpr bool kByThread = Config::kQkGroup == QuantGroup::kThread;

 public:
  /// One scale for each 32 keys of a tile with groups of threads, else one for the tile.
  static constexpr int kKeyScales = kByThread ? Config::kTileK / 32 : 1;

  template <class Args>
  __device__ __forceinline__ QuantisedLogits(const Args& args, const WorkTile& row, int warp) {
    const auto& predict = args.predict;
    const int h_kv = row.h / args.attend.heads_per_kv;
    const int n_h_kv = row.n_h / args.attend.heads_per_kv;
    const long long head = static_cast<long long>(row.b) * row.n_h + row.h;
    const long long head_kv = static_cast<long long>(row.b) * n_h_kv + h_kv;
    const int lane = lane_index();
    int group = row.i;
    if constexpr (Config::kQkGroup == QuantGroup::kWarp) group = row.i * Config::kWarps + warp;
    if constexpr (kByThread) group = (row.i * Config::kWarps + warp) * 8 + lane / 4;
    query_scale_ = predict.q_scale[head * predict.q_groups + group];
    key_scales_ = predict.k_scale + head_kv * predict.k_groups + (kByThread ? lane % 4 : 0);
    if constexpr (Config::kHasRowBias) {
      const float* bias =
          predict.row_bias + head * predict.q_padded + row.q0 + warp * kWarpRows + lane / 4;
      row_bias_[0] = bias[0];
      row_bias_[1] = bias[8];
    }
    if constexpr (Config::kHasColumnBias) {
      column_bias_ = predict.column_bias + head * predict.k_padded + lane % 4 * 2;
    }
  }

  /// What belongs to the lane's keys of one tile.
  struct KeyTerms {
    float scales[kKeyScales];  ///< times the query scale
    float2 bias[Config::kHasColumnBias ? Shape::kKeyBlocks : 1];
  };

  /// Of key tile j; asked for before the product, which hides the latency.
  __device__ __forceinline__ KeyTerms read(int j) const {
    KeyTerms terms;
    if constexpr (kByThread) {
#pragma unroll
      for (int n = 0; n < kKeyScales; ++n) terms.scales[n] = key_scales_[(j * kKeyScales + n) * 4];
    } else {
      terms.scales[0] = key_scales_[j / (Config::kQkTileK / Config::kTileK)];
    }
#pragma unroll
    for (int n = 0; n < kKeyScales; ++n) terms.scales[n] *= query_scale_;
    if constexpr (Config::kHasColumnBias) {
#pragma unroll
      for (int n = 0; n < Shape::kKeyBlocks; ++n) {
        terms.bias[n] = *reinterpret_cast<const float2*>(column_bias_ + j * Config::kTileK + n * 8);
      }
    }
    return terms;
  }

  /// Scores in units of products of queries and keys.
  __device__ __forceinline__ void convert(float (&scores)[Shape::kKeyBlocks][4],
                                          const int (&sums)[Shape::kKeyBlocks][4],
                                          const KeyTerms& terms) const {
#pragma unroll
    for (int n = 0; n < Shape::kKeyBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float product = sum_as_float(sums[n][i]);
        const float scale = terms.scales[kByThread ? n / 4 : 0];
        if constexpr (kHasBias) {
          scores[n][i] = fmaf(product, scale, bias(terms, n, i));
        } else {
          scores[n][i] = product * scale;
        }
      }
    }
  }

 private:
  static constexpr bool kHasBias = Config::kHasRowBias || Config::kHasColumnBias;

  __device__ __forceinline__ float bias(const KeyTerms& terms, int n, int i) const {
    if constexpr (!Config::kHasColumnBias) return row_bias_[i / 2];
    const float column = i % 2 == 0 ? terms.bias[n].x : terms.bias[n].y;
    return Config::kHasRowBias ? row_bias_[i / 2] + column : column;
  }

  float query_scale_;
  float row_bias_[2];         ///< of rows g and g + 8
  const float* key_scales_;   ///< of the lane's group in the head's first tile
  const float* column_bias_;  ///< of the lane's keys in the head's first block
};

/// 16-bit operands: nothing.
struct PlainLogits {
  template <class Args>
  __device__ __forceinline__ PlainLogits(const Args&, const WorkTile&, int) {}
};

}  // namespace lacuna
