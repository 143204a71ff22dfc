// How closely predict_token_pairs looks at a product, and what a warp says of its tiles then.
//
// `keep` changes its mind at one p, its threshold, the same for all tiles of a row. A first look
// tells which tiles are below it (nothing of them reaches it) or above (something surely does): as
// good as their weights, and all that is said of them then is which side it is. Only where a tile
// may be on either side is the product looked at closely.
//
// The first look knows of the keys of a lane in a unit the largest bias alone, and how far the
// others may be below it. It compares sums, not weights: in steps, what a weight needs to reach the
// threshold is a number of the row, divided by the scale of the keys.
#pragma once

#include "arch/approx.cuh"
#include "arch/redux.cuh"
#include "select/token_pairs/bounds.cuh"

namespace lacuna {

/// Weights, raised, between which a rule changes its mind: it says the same of all up to `low`, and
/// of all from `high` on, which is kThresholdWidth more.
struct TokenPairThreshold {
  float low, high;
};
inline constexpr float kThresholdWidth = 2.0f * kRaised / (32 * 32 * 32);

/// By a whole warp: each lane asks at another p, three times, 32 times closer each.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ TokenPairThreshold find_threshold(const Args& args, const KeepRow& row) {
  const bool at_first = keeps_p<Config, Hooks>(args, row, 0.0f);
  float low = 0.0f, step = 2.0f * kRaised / 32.0f;
#pragma unroll 1
  for (int round = 0; round < 3; ++round, step /= 32.0f) {
    const float raised = low + step * static_cast<float>(lane_index() + 1);
    const bool now = keeps_p<Config, Hooks>(args, row, exp2_approx(raised - kRaised));
    const u32 changed = __ballot_sync(kAllLanes, now != at_first);
    if (changed == 0) return {kInfinity, kInfinity};  // it never does
    low += step * static_cast<float>(__ffs(static_cast<int>(changed)) - 1);
  }
  return {low, low + kThresholdWidth};
}

/// Of slack, what a first look allows for.
inline constexpr float kMostSlack = 1.0f / 64.0f;

/// How many of a row's steps, at a scale of the keys of 1, slack and the threshold's width may be,
/// over what TokenPairRows::inverse is.
__device__ __forceinline__ float unsure_of_scale(float scale) {
  return (kThresholdWidth + 2.0f * kMostSlack) / (scale * kLog2E);
}

/// What a warp says of the tiles of half a step: each lane one bound of one tile, in the bits of a
/// raised weight; the first kHalfTiles lanes from above, as many more from below.
template <class Config>
class BoundClassifier {
  using Shape = TokenPairShape<Config>;
  using Bounds = TokenPairBounds<Config>;
  using Weights = typename Bounds::Weights;
  static constexpr int kTiles = Shape::kHalfTiles, kUnitsOfTile = Shape::kUnitsOfTile;
  static constexpr int kUnits = Shape::kHalfUnits;
  /// What rounding may make of sums and of what they need, with that of the sums themselves.
  static constexpr float kMargin = Shape::kMarginSteps + 4.0f;

 public:
  static constexpr int kLanes = Shape::kBounds * kTiles;
  __device__ __forceinline__ static int tile_of_lane() { return lane_index() % kTiles; }
  __device__ __forceinline__ static int bound_of_lane() { return lane_index() / kTiles; }

  __device__ __forceinline__ BoundClassifier(const TokenPairRows<Config>& rows,
                                             const TokenPairThreshold& threshold)
      : rows_(rows),
        is_above_(__float_as_int(threshold.high)),
        is_below_(__float_as_int(bound_of_lane() == Shape::kAbove ? threshold.low : 0.0f)) {
    if constexpr (!Shape::kHasCoarseBound) return;
    bool is_known = rows.slack <= kMostSlack;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      given_[r] = (rows.base[r] - threshold.low) / rows.to_log2;
      is_known &= given_[r] < kInfinity;
    }
    if (!is_known) rows_.inverse = __int_as_float(kUnknown);  // nothing fits
  }

  __device__ __forceinline__ const TokenPairRows<Config>& rows() const { return rows_; }

  /// What a slot says of half of its keys, for this lane, by unit.
  struct Numbers {
    float4 inverse, most_bias, spread;
  };
  __device__ __forceinline__ static Numbers read_numbers(const typename Shape::Control& control,
                                                         u32 slot, int half) {
    const auto number = [&](typename Shape::Number n) {
      return *reinterpret_cast<const float4*>(
          &control.numbers[slot][n][lane_index() % 4][half * kUnits]);
    };
    return {number(Shape::kInverse), number(Shape::kMostBias), number(Shape::kSpread)};
  }

  /// Can the biases of a slot be counted in steps of these rows?
  __device__ __forceinline__ bool fits(const typename Shape::Control& control, u32 slot) const {
    if constexpr (!Config::kHasColumnBias) return true;
    const float4 most = *reinterpret_cast<const float4*>(control.largest_bias[slot]);
    return fmaxf(fmaxf(most.x, most.y), fmaxf(most.z, most.w)) * rows_.inverse <= Shape::kMostSteps;
  }

  /// From weights found closely. Unless biases `fit`, nothing is known.
  __device__ __forceinline__ static int tell(const Weights& weights, bool fit) {
    int mine = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      int above = fit ? 0 : kUnknown, below = 0;
#pragma unroll
      for (int u = t * kUnitsOfTile; u < (t + 1) * kUnitsOfTile; ++u) {
        const auto& rows = weights.above[u];
        const int most = larger(__float_as_int(rows[0]), __float_as_int(rows[1]));
        above = larger(above, most);
        below = larger(below, __float_as_int(__int_as_float(most) - weights.gap[u]));
      }
      above = max_over_lanes(above), below = max_over_lanes(below);
      if (tile_of_lane() == t) mine = bound_of_lane() == Shape::kAbove ? above : below;
    }
    return mine;
  }

  /// From a first look, if it will do; else `closely()` finds weights.
  template <class Look>
  __device__ __forceinline__ int tell(const typename Bounds::Sums& sums, const Numbers& numbers,
                                      bool fit, Look closely) const {
    constexpr float kReaches = Bounds::kInteger - kMargin, kPasses = Bounds::kInteger + kMargin;
    float sum[kUnits], most = 0.0f;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      sum[u] = find_sum(sums, numbers, u);
      most = fmaxf(most, sum[u]);
    }
    if (!__any_sync(kAllLanes, !fit || most >= kReaches)) return is_below_;
    u32 above = 0;  // tiles
    bool is_open = !fit;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      bool reaches = false, passes = false;
#pragma unroll
      for (int u = t * kUnitsOfTile; u < (t + 1) * kUnitsOfTile; ++u) {
        reaches |= sum[u] >= kReaches;
        passes |= sum[u] >= fmaf(Bounds::of_unit(numbers.spread, u), rows_.inverse, kPasses);
      }
      const bool is_above = __any_sync(kAllLanes, passes);
      if (is_above) above |= 1u << t;
      is_open |= reaches && !is_above;
    }
    if (__any_sync(kAllLanes, is_open)) return tell(closely(), fit);
    return (above >> tile_of_lane() & 1) != 0 ? is_above_ : is_below_;
  }

 private:
  /// The largest sum of a unit in either row, less what the row needs there, plus kInteger. A row
  /// that takes no part has -inf.
  __device__ __forceinline__ float find_sum(const typename Bounds::Sums& sums,
                                            const Numbers& numbers, int u) const {
    const float bias = Bounds::of_unit(numbers.most_bias, u);
    const int steps = __float_as_int(fmaf(bias, rows_.inverse, Bounds::kInteger));
    float sum[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      int most = Bounds::sum_of(sums, u, 0, r);
#pragma unroll
      for (int n = 1; n < Bounds::kKeys; ++n) most = larger(most, Bounds::sum_of(sums, u, n, r));
      sum[r] = fmaf(given_[r], Bounds::of_unit(numbers.inverse, u), __int_as_float(most + steps));
    }
    return fmaxf(sum[0], sum[1]);
  }

  TokenPairRows<Config> rows_;
  float given_[2];  ///< what a row gives towards the threshold, in steps at a scale of 1
  int is_above_, is_below_;
};

}  // namespace lacuna
