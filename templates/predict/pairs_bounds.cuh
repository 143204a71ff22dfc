// How large the weights of a step's tiles may be, of 16 queries of a warp: products of integers to
// the largest sum of each row in each 32 keys, and those to weights.
//
// Of 32 keys a lane holds those of one scale, and its two rows share theirs. So
//   logit = unit * (product + bias / unit) + what belongs to the row
// is largest where the sum in brackets is, and with the bias rounded to whole steps of the unit
// that costs one instruction a score: add and compare, in integers. What rounding, here and in the
// exact computation, can make of it is added once, behind the comparison: a bound from above, and
// from below by PairGap.
#pragma once

#include "arch/redux.cuh"
#include "arch/warp.cuh"
#include "arch/wgmma_8bit.cuh"
#include "base/math.cuh"
#include "base/pin.cuh"
#include "predict/pairs_shape.cuh"
#include "quantise/groups.cuh"

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
struct PairRows {
  using Shape = PairShape<Config>;
  float to_log2;  ///< one step, but for the scale of the keys
  float inverse;  ///< a bias to steps
  float base[2];  ///< -inf: the row takes no part
  float slack;    ///< what rounding has made of the larger base

  /// `row`: of the block; `tile`: where it lies.
  template <class Args>
  __device__ __forceinline__ PairRows(const Args& args, const KeepRow& tile, int q,
                                      const float (&offset)[2]) {
    using QueryGroups = QuantGroups<Config::kGroup, true, Config::kTileQ>;
    const long long head = query_head(args, tile.b, tile.h);
    const float scale = args.attend.scale;
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
class PairBounds {
  using Shape = PairShape<Config>;
  using Rows = PairRows<Config>;
  /// In the bits of floats around this one a unit of the last place is 1.
  static constexpr float kInteger = 12582912.0f;  // 1.5 * 2^23

 public:
  /// Of a set of queries and half of a step's keys.
  using Sums = int[Shape::kBlocks][4];
  using Queries = u32[Config::kHeadDim / 32][4];
  using SetRows = const Rows (&)[Shape::kSets];

  /// Fragments of the 16 rows from `first` on, of a head's integers.
  __device__ __forceinline__ static void load_queries(Queries& queries, const signed char* first) {
    const signed char* const lane =
        first + lane_index() / 4 * Config::kHeadDim + lane_index() % 4 * 4;
#pragma unroll
    for (int step = 0; step < Config::kHeadDim / 32; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 x = *reinterpret_cast<const u32*>(lane + i % 2 * 8 * Config::kHeadDim +
                                                    step * 32 + i / 2 * 16);
        queries[step][i] = Shape::kParts == 16 ? x << 4 & 0xf0f0f0f0u : x;
      }
    }
  }

  /// What a slot says of half of its keys, for this lane.
  struct Numbers {
    float4 scale;
    float4 low[Shape::kHalfUnits], high[Shape::kHalfUnits];  ///< biases
  };
  __device__ __forceinline__ static void read_numbers(Numbers& numbers,
                                                      const typename Shape::Control& control,
                                                      u32 slot, int half) {
    const float* const lane = control.numbers[slot] + lane_index() % 4 * Shape::kLaneKeys;
    if constexpr (Config::kHasColumnBias) {
#pragma unroll
      for (int u = 0; u < Shape::kHalfUnits; ++u) {
        const float4* const unit =
            reinterpret_cast<const float4*>(lane + half * Shape::kHalfKeys + u * Shape::kUnitKeys);
        numbers.low[u] = unit[0];
        numbers.high[u] = unit[1];
      }
    }
    numbers.scale =
        *reinterpret_cast<const float4*>(lane + Shape::kStepKeys + half * Shape::kHalfUnits);
  }

  /// Can the biases of a slot be counted in steps of these rows?
  struct Fits {
    bool set[Shape::kSets];
  };
  __device__ __forceinline__ static Fits read_fits(const typename Shape::Control& control, u32 slot,
                                                   SetRows rows) {
    Fits fits;
    const float4 biases = *reinterpret_cast<const float4*>(control.largest_bias[slot]);
    const float largest = fmaxf(fmaxf(biases.x, biases.y), fmaxf(biases.z, biases.w));
#pragma unroll
    for (int set = 0; set < Shape::kSets; ++set)
      fits.set[set] = !Config::kHasColumnBias || largest * rows[set].inverse <= Shape::kMostSteps;
    return fits;
  }

  /// The product of a set of queries with half of a slot's keys comes under way.
  __device__ __forceinline__ static void multiply(Sums& sums, const Queries& queries, u32 keys,
                                                  int half) {
    const auto panel = Shape::KeyPanel::along_rows(uniform_over_warp(keys));
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < Config::kHeadDim / 32; ++step)
      wgmma_from_registers_s8(sums, queries[step],
                              panel.at(Shape::KeyPanel::along_step(step, half * Shape::kHalfKeys)),
                              step != 0);
    wgmma_commit();
  }

  /// Of each tile of a half, as bits of a float: the largest that a lane, or then a warp, has.
  struct alignas(sizeof(int) * Shape::kHalfTiles) Largest {
    int tile[Shape::kHalfTiles];
  };
  __device__ __forceinline__ static Largest find(const Sums& sums, const Rows& rows,
                                                 const Numbers& numbers, bool fits) {
    const float scale[Shape::kHalfUnits] = {numbers.scale.x, numbers.scale.y, numbers.scale.z,
                                            numbers.scale.w};
    Largest largest;
#pragma unroll
    for (int t = 0; t < Shape::kHalfTiles; ++t) largest.tile[t] = fits ? 0 : kUnknown;
#pragma unroll
    for (int u = 0; u < Shape::kHalfUnits; ++u) {
      int most[2];
      find_most(most, sums, rows, numbers.low[u], numbers.high[u], u);
      const float to_log2 = rows.to_log2 * scale[u];
      int& bound = largest.tile[u / Shape::kUnitsOfTile];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float steps = Config::kHasColumnBias
                                ? __int_as_float(most[r]) - (kInteger - Shape::kMarginSteps)
                                : static_cast<float>(most[r]) + Shape::kMarginSteps;
        bound = larger(bound, __float_as_int(fmaf(steps, to_log2, rows.base[r])));
      }
    }
    // Here, and not where they are read: the next product takes the sums' registers.
#pragma unroll
    for (int t = 0; t < Shape::kHalfTiles; ++t) pin(largest.tile[t]);
    return largest;
  }

 private:
  static constexpr int kKeys = Shape::kLaneKeys;

  /// The largest of each row in unit u, of those that the lane has: sums with the bias in steps, as
  /// the bits of kInteger + sum; without a bias the products themselves.
  __device__ __forceinline__ static void find_most(int (&most)[2],
                                                   const int (&sums)[Shape::kBlocks][4],
                                                   const Rows& rows, const float4& low,
                                                   const float4& high, int u) {
    int steps[kKeys] = {};
    if constexpr (Config::kHasColumnBias) {
      const float x[kKeys] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int n = 0; n < kKeys; ++n) steps[n] = __float_as_int(fmaf(x[n], rows.inverse, kInteger));
    }
#pragma unroll
    for (int n = 0; n < kKeys; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int sum = sums[u * (kKeys / 2) + n / 2][2 * r + n % 2] + steps[n];
        most[r] = n == 0 ? sum : larger(most[r], sum);
      }
    }
  }
};

/// How far below its bound a tile's largest weight may lie, in log2.
template <class Config>
__device__ __forceinline__ float pair_gap(float row_scale, float tile_scale, float slack) {
  return 2.0f * PairShape<Config>::kMarginSteps * row_scale * tile_scale + 2.0f * slack;
}

}  // namespace lacuna
