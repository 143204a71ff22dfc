// How large the weights of a step's tiles may be, of 16 queries of a warp: products of integers to
// the largest sum of each row in each 32 keys, and those to weights.
//
// Of 32 keys, a unit, a lane holds those of one scale, and its two rows share theirs. So
//   logit = unit * (product + bias / unit) + what belongs to the row
// is largest where the sum in brackets is. That is one instruction a score, add and compare in
// integers, with the bias rounded to whole steps of the unit. (A first look makes do with the
// largest product and the largest bias, each found by itself: half an instruction a score, see
// select/token_pairs/bound_classifier.cuh.) What rounding, here and in the exact computation, can
// make of it is added once, behind the comparison: a bound from above; and one from below, by how
// far the largest weight may lie under that.
#pragma once

#include "arch/multiply/wgmma_8bit.cuh"
#include "arch/warp.cuh"
#include "base/math.cuh"
#include "quantise/groups.cuh"
#include "select/token_pairs/token_pair_shape.cuh"

namespace lacuna {

/// Added to weights in log2, so that all that matter are positive: floats then compare as integers,
/// and 0 stands for everything too small.
inline constexpr float kRaised = 256.0f;
/// What a weight raised to such a size has lost by rounding, at most.
inline constexpr float kRaisedError = 1e-4f;
/// What sums of a row's bias and reference have lost, at most, of the larger one.
inline constexpr float kRowError = 1.0f / (1 << 20);
/// A bound of which nothing is known: NaN, above all others.
inline constexpr int kUnknown = 0x7fffffff;

/// What belongs to rows g and g + 8 of a lane's warp.
template <class Config>
struct TokenPairRows {
  using Shape = TokenPairShape<Config>;
  float to_log2;  ///< one step, but for the scale of the keys
  float inverse;  ///< a bias to steps
  float base[2];  ///< -inf: the row takes no part
  float slack;    ///< what rounding has made of the larger base

  /// `row`: of the block; `tile`: where it lies.
  template <class Args>
  __device__ __forceinline__ TokenPairRows(const Args& args, const KeepRow& tile, int q,
                                           const float (&offset)[2]) {
    using QueryGroups = QuantGroups<Config::kGroup, true, Config::kTileQ>;
    const long long head = query_head(args, tile.b, tile.h);
    const float scale = args.attend.scale * Config::kTemperature;
    const float unit =
        args.predict.estimate_q_scale[head * args.predict.estimate_q_groups + QueryGroups::of(q)];
    to_log2 = unit * (scale * kLog2E / Shape::kParts);
    inverse = Shape::kParts / unit;
    slack = 0.0f;
    bool takes_part = false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      base[r] = -kInfinity;
      if (!(offset[r] < kInfinity)) continue;
      takes_part = true;
      float bias = 0.0f;
      if constexpr (Config::kHasRowBias)
        bias = args.predict.row_bias[head * args.predict.q_padded + q + 8 * r] * scale * kLog2E;
      const float error = kRaisedError + kRowError * (fabsf(bias) + fabsf(offset[r]));
      base[r] = bias - offset[r] + kRaised + error;
      slack = fmaxf(slack, error);
    }
    // What is read of rows that do not exist may be anything.
    if (!takes_part) to_log2 = 1e-15f, inverse = 1e-30f;
    // The largest product is the largest logit: so it has to be.
    if (!(scale >= 0.0f)) to_log2 = __int_as_float(kUnknown);
  }
};

template <class Config>
class TokenPairBounds {
  using Shape = TokenPairShape<Config>;
  using Rows = TokenPairRows<Config>;

 public:
  /// In the bits of floats around this one a unit of the last place is 1.
  static constexpr float kInteger = 12582912.0f;  // 1.5 * 2^23
  /// Of a warpgroup's queries and half of a step's keys.
  using Sums = int[Shape::kBlocks][4];
  static constexpr int kUnits = Shape::kHalfUnits;
  static_assert(kUnits == 4);
  static constexpr int kKeys = Shape::kLaneKeys;

  __device__ __forceinline__ static float of_unit(const float4& x, int u) {
    return u == 0 ? x.x : u == 1 ? x.y : u == 2 ? x.z : x.w;
  }
  /// Of the lane's key n in unit u, and its row r.
  __device__ __forceinline__ static int sum_of(const Sums& sums, int u, int n, int r) {
    return sums[u * (kKeys / 2) + n / 2][2 * r + n % 2];
  }

  /// The 16 rows from `row` on of a block, from a head's integers.
  __device__ __forceinline__ static void load_queries(unsigned char* tile, int row,
                                                      const signed char* first) {
    using Tile = typename Shape::QueryTile;
#pragma unroll
    for (int n = lane_index(); n < kWarpRows * Tile::kChunks; n += 32) {
      const int r = n / Tile::kChunks, chunk = n % Tile::kChunks;
      uint4 x = *reinterpret_cast<const uint4*>(first + r * Config::kHeadDim + chunk * 16);
      if (Shape::kParts == 16) {
        x.x = x.x << 4 & 0xf0f0f0f0u, x.y = x.y << 4 & 0xf0f0f0f0u;
        x.z = x.z << 4 & 0xf0f0f0f0u, x.w = x.w << 4 & 0xf0f0f0f0u;
      }
      *reinterpret_cast<uint4*>(tile + Tile::offset(row + r, chunk)) = x;
    }
  }

  /// The product of the queries with half of a slot's keys comes under way. `keys`: the ring's.
  __device__ __forceinline__ static void multiply(Sums& sums, const OperandDescriptor& queries,
                                                  const OperandDescriptor& keys, u32 slot,
                                                  int half) {
    using Panel = typename Shape::KeyPanel;
    const int first = static_cast<int>(slot) * Panel::kBytes;
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < Config::kHeadDim / 32; ++step)
      wgmma_from_smem_s8(sums, queries.at(Shape::QueryPanel::along_step(step)),
                         keys.at(first + Panel::along_step(step, half * Shape::kHalfKeys)),
                         step != 0);
    wgmma_commit();
  }

  /// The largest weight of each row that a lane has in each unit of a half: at most `above`, at
  /// least `gap` less.
  struct Weights {
    float above[kUnits][2], gap[kUnits];
  };

  /// By the bias of each key: `slot` has to be the caller's still.
  __device__ __forceinline__ static Weights find_closely(const Sums& sums, const Rows& rows,
                                                         const typename Shape::Control& control,
                                                         u32 slot, int half) {
    const float4 scale = *reinterpret_cast<const float4*>(
        &control.numbers[slot][Shape::kScale][lane_index() % 4][half * kUnits]);
    Weights weights;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      int steps[kKeys] = {}, most[2];
      if constexpr (Config::kHasColumnBias)
        count_steps(steps, control.bias[slot][half * kUnits + u][lane_index() % 4], rows.inverse);
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int sum = sum_of(sums, u, n, r) + steps[n];
          most[r] = n == 0 ? sum : larger(most[r], sum);
        }
      }
      set_unit(weights, u, most, rows, of_unit(scale, u));
    }
    return weights;
  }

 private:
  /// Biases in steps, as the bits of kInteger + steps.
  __device__ __forceinline__ static void count_steps(int (&steps)[kKeys],
                                                     const float (&bias)[kKeys], float inverse) {
    const float4 low = *reinterpret_cast<const float4*>(bias);
    const float4 high = *reinterpret_cast<const float4*>(bias + 4);
    const float x[kKeys] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int n = 0; n < kKeys; ++n) steps[n] = __float_as_int(fmaf(x[n], inverse, kInteger));
  }

  /// `most`: the largest sum of each row, as the bits of kInteger + sum, or without biases as it
  /// is.
  __device__ __forceinline__ static void set_unit(Weights& weights, int u, const int (&most)[2],
                                                  const Rows& rows, float scale) {
    const float to_log2 = rows.to_log2 * scale;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float steps = Config::kHasColumnBias
                              ? __int_as_float(most[r]) - (kInteger - Shape::kMarginSteps)
                              : static_cast<float>(most[r]) + Shape::kMarginSteps;
      weights.above[u][r] = fmaf(steps, to_log2, rows.base[r]);
    }
    weights.gap[u] = fmaf(2.0f * Shape::kMarginSteps, to_log2, 2.0f * rows.slack);
  }
};

}  // namespace lacuna
