// How closely predict_token_pairs looks at a product, and what a warp says of its tiles then.
//
// `keep` changes its mind at one p, its threshold, the same for all tiles of a row. A first look
// tells which tiles are below it (nothing of them reaches it) or above (something surely does): as
// good as their weights, and all that is said of them then is which side it is. Only where a tile
// may be on either side is the product looked at closely.
#pragma once

#include "arch/approx.cuh"
#include "predict/pairs_bounds.cuh"

namespace lacuna {

/// Weights, raised, between which a rule changes its mind: it says the same of all up to `low`, and
/// of all from `high` on.
struct PairThreshold {
  float low, high;
};

/// By a whole warp: each lane asks at another p, three times, 32 times closer each.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ PairThreshold find_threshold(const Args& args, const KeepRow& row) {
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
  return {low, low + step * 32.0f};
}

/// What a warp says of the tiles of half a step: each lane one bound of one tile, in the bits of a
/// raised weight; the first kHalfTiles lanes from above, as many more from below.
template <class Config>
class PairLook {
  using Shape = PairShape<Config>;
  using Bounds = PairBounds<Config>;
  using Weights = typename Bounds::Weights;
  static constexpr int kTiles = Shape::kHalfTiles, kUnitsOfTile = Shape::kUnitsOfTile;

 public:
  static constexpr int kLanes = Shape::kBounds * kTiles;
  __device__ __forceinline__ static int tile_of_lane() { return lane_index() % kTiles; }
  __device__ __forceinline__ static int bound_of_lane() { return lane_index() / kTiles; }

  /// From weights found closely. Unless biases `fit`, nothing is known.
  __device__ __forceinline__ static int tell(const Weights& weights, bool fit) {
    int mine = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      int above = fit ? 0 : kUnknown, below = 0;
#pragma unroll
      for (int u = t * kUnitsOfTile; u < (t + 1) * kUnitsOfTile; ++u) {
        const int most = largest(weights, u);
        above = larger(above, most);
        below = larger(below, __float_as_int(__int_as_float(most) - weights.gap[u]));
      }
      above = max_over_lanes(above), below = max_over_lanes(below);
      if (tile_of_lane() == t) mine = bound_of_lane() == Shape::kAbove ? above : below;
    }
    return mine;
  }

  /// From those of a first look, if they will do; else `closely()` finds others.
  template <class Look>
  __device__ __forceinline__ static int tell(const Weights& loose, bool fit,
                                             const PairThreshold& threshold, Look closely) {
    const int is_below = __float_as_int(bound_of_lane() == Shape::kAbove ? threshold.low : 0.0f);
    if (!__any_sync(kAllLanes, !fit || reaches(loose, threshold, 0, Shape::kHalfUnits)))
      return is_below;
    bool is_open = !fit, is_mine_above = false;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int first = t * kUnitsOfTile, end = first + kUnitsOfTile;
      const bool is_above = __any_sync(kAllLanes, passes(loose, threshold, first, end));
      is_open |= !is_above && reaches(loose, threshold, first, end);
      if (tile_of_lane() == t) is_mine_above = is_above;
    }
    if (__any_sync(kAllLanes, is_open)) return tell(closely(), fit);
    return is_mine_above ? __float_as_int(threshold.high) : is_below;
  }

 private:
  /// As bits, of which NaN has the most.
  __device__ __forceinline__ static int largest(const Weights& weights, int u) {
    const auto& rows = weights.above[u];
    return larger(__float_as_int(rows[0]), __float_as_int(rows[1]));
  }
  /// May a weight of the units from `first` up to `end` be above the threshold?
  __device__ __forceinline__ static bool reaches(const Weights& weights,
                                                 const PairThreshold& threshold, int first,
                                                 int end) {
    int most = 0;
#pragma unroll
    for (int u = first; u < end; ++u) most = larger(most, largest(weights, u));
    return most >= __float_as_int(threshold.low);
  }
  /// Is one surely? What is unknown is not.
  __device__ __forceinline__ static bool passes(const Weights& weights,
                                                const PairThreshold& threshold, int first,
                                                int end) {
    bool is_sure = false;
#pragma unroll
    for (int u = first; u < end; ++u)
      is_sure |= __int_as_float(largest(weights, u)) - weights.gap[u] >= threshold.high;
    return is_sure;
  }
};

}  // namespace lacuna
