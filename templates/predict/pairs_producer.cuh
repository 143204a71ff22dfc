// The producer of predict_token_pairs: one warp that finds the steps which the block sees and loads
// their keys. Protocol: predict/pairs_shape.cuh.
#pragma once

#include "arch/cp_async.cuh"
#include "arch/mbarrier.cuh"
#include "arch/redux.cuh"
#include "predict/pairs_shape.cuh"
#include "quantise/groups.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class PairProducer {
  using Shape = PairShape<Config>;
  using Smem = PairSmem<Config>;
  using KeyGroups = QuantGroups<Config::kGroup, false, Config::kTileK>;

  /// What a lane holds of a step's numbers until its slot is free: of the keys that one lane in
  /// each quad of the consumers has of one unit.
  struct Numbers {
    float scale;
    float bias[8];  ///< in units of the scale
  };

 public:
  __device__ __forceinline__ PairProducer(const Args& args, const Smem& smem, const KeepRow& rows)
      : args_(args), smem_(smem), rows_(rows) {}

  __device__ __forceinline__ void run() const {
    RingPosition<Shape::kStages> at;
    int step = next_possible(0);
    while (step < steps()) {
      const Numbers numbers = read_numbers(step);
      Smem::barrier(smem_.control().empty[at.slot()]).wait(at.phase() ^ 1);
      copy_keys(step, at.slot());
      write_numbers(numbers, step, at.slot());
      announce(at.slot());
      at.advance();
      step = next_possible(step + 1);
    }
    Smem::barrier(smem_.control().empty[at.slot()]).wait(at.phase() ^ 1);
    if (lane_index() == 0) smem_.control().messages[at.slot()] = {-1, 0.0f};
    announce(at.slot());
    cp_async_commit();
    cp_async_wait<0>();  // copies do not outlive who issued them
  }

 private:
  __device__ __forceinline__ int steps() const {
    return ceil_div(args_.attend.n_k, Shape::kStepKeys);
  }

  /// The first step from `step` on of which the block sees anything; steps() or more if there is
  /// none. Each lane asks about another.
  __device__ __forceinline__ int next_possible(int step) const {
    for (; step < steps(); step += 32) {
      const int mine = step + lane_index();
      const bool sees = mine < steps() && sees_step<Config, Hooks>(args_, rows_, mine);
      const u32 possible = __ballot_sync(kAllLanes, sees);
      if (possible != 0) return step + __ffs(static_cast<int>(possible)) - 1;
    }
    return step;
  }

  __device__ __forceinline__ void announce(u32 slot) const {
    const Mbarrier full = Smem::barrier(smem_.control().full[slot]);
    full.arrive_after_copies();
    full.arrive();
  }

  /// Keys past the end become zeros. Rows are contiguous on both sides, so that a pass is 512 bytes
  /// from one to the next, which lanes share chunk by chunk.
  __device__ __forceinline__ void copy_keys(int step, u32 slot) const {
    constexpr int kChunks = Shape::KeyTile::kChunks, kRowsOfPass = 32 / kChunks;
    const int first = step * Shape::kStepKeys;
    const long long row = key_head(args_, rows_.b, rows_.h) * args_.predict.k_padded + first;
    const signed char* const source =
        args_.predict.estimate_k_values + row * Config::kHeadDim + lane_index() * 16;
    const u32 tile = smem_.keys(slot);
#pragma unroll 4
    for (int pass = 0; pass < Shape::kStepKeys / kRowsOfPass; ++pass) {
      const int r = pass * kRowsOfPass + lane_index() / kChunks;
      cp_async_16(tile + Shape::KeyTile::offset(r, lane_index() % kChunks), source + pass * 512,
                  first + r < args_.attend.n_k);
    }
  }

  __device__ __forceinline__ Numbers read_numbers(int step) const {
    const int keys = args_.attend.n_k;
    const int first = step * Shape::kStepKeys + unit() * Shape::kUnitKeys + quad_lane() * 2;
    Numbers numbers;
    // Past the end there are groups of padded tokens, which nothing may have written. Times a bias
    // of -inf they stay that: not 0.
    numbers.scale = 1e-15f;
    if (first < keys) {
      numbers.scale = args_.predict.estimate_k_scale[key_head(args_, rows_.b, rows_.h) *
                                                         args_.predict.estimate_k_groups +
                                                     KeyGroups::of(first)];
    }
    if constexpr (Config::kHasColumnBias) {
      const float* const bias = args_.predict.column_bias +
                                query_head(args_, rows_.b, rows_.h) * args_.predict.k_padded +
                                first;
      const float inverse = 1.0f / numbers.scale;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float2 pair = *reinterpret_cast<const float2*>(bias + n * 8);
        numbers.bias[2 * n] = in_units(pair.x, inverse, first + n * 8 < keys);
        numbers.bias[2 * n + 1] = in_units(pair.y, inverse, first + n * 8 + 1 < keys);
      }
    }
    return numbers;
  }

  /// A column with a NaN is never the largest, nor one that does not exist: -inf. What cannot be
  /// expressed is infinite, and then nothing is known of the step.
  __device__ __forceinline__ static float in_units(float bias, float inverse, bool exists) {
    if (!exists || bias != bias || bias == -kInfinity) return -kInfinity;
    const float x = fabsf(bias * inverse);
    return x < kInfinity ? bias * inverse : kInfinity;
  }

  __device__ __forceinline__ void write_numbers(const Numbers& numbers, int step, u32 slot) const {
    auto& control = smem_.control();
    constexpr int kHalfUnits = Shape::kHalfUnits;
    control.scale[slot][unit() / kHalfUnits][quad_lane()][unit() % kHalfUnits] = numbers.scale;
    float scale = quad_max(numbers.scale);  // of the unit, then of its tile
#pragma unroll
    for (int units = Shape::kUnitsOfTile / 2; units > 0; units /= 2)
      scale = fmaxf(scale, __shfl_xor_sync(kAllLanes, scale, units * 4));
    const int tile = unit() / Shape::kUnitsOfTile;
    if (quad_lane() == 0 && unit() % Shape::kUnitsOfTile == 0)
      control.tile_scale[slot][tile / Shape::kHalfTiles][tile % Shape::kHalfTiles] = scale;
    float largest = 0.0f;
    if constexpr (Config::kHasColumnBias) {
      const auto& x = numbers.bias;
      float4* const bias = reinterpret_cast<float4*>(control.bias[slot]) + lane_index() * 2;
      bias[0] = {x[0], x[1], x[2], x[3]};
      bias[1] = {x[4], x[5], x[6], x[7]};
#pragma unroll
      for (int n = 0; n < 8; ++n)
        if (x[n] > -kInfinity) largest = fmaxf(largest, fabsf(x[n]));
      // Magnitudes are ordered like their bits.
      largest = __int_as_float(max_over_lanes(__float_as_int(largest)));
    }
    if (lane_index() == 0) control.messages[slot] = {step, largest};
  }

  /// The keys of a lane are those of one lane of a quad in one unit.
  __device__ __forceinline__ static int unit() { return lane_index() / 4; }
  __device__ __forceinline__ static int quad_lane() { return lane_index() % 4; }
  static_assert(Shape::kUnits * 4 == 32);

  const Args& args_;
  const Smem smem_;
  const KeepRow& rows_;
};

}  // namespace lacuna
