// The producers of predict_token_pairs: four warps. Each finds the steps that the block sees by
// itself, and loads a quarter of each step's keys. Protocol:
// select/token_pairs/token_pair_shape.cuh.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "arch/redux.cuh"
#include "quantise/groups.cuh"
#include "select/four_consumers.cuh"
#include "select/token_pairs/bound_classifier.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TokenPairProducer {
  using Shape = TokenPairShape<Config>;
  using Smem = TokenPairSmem<Config>;
  using KeyGroups = QuantGroups<Config::kGroup, false, Config::kTileK>;

  /// Scale and bias of the lane's two keys of a step, held until the step's slot is free.
  struct Numbers {
    float scale;
    float2 bias;  ///< as it was written
  };
  static constexpr int kKeys = Shape::kStepKeys / Shape::kProducerWarps;  ///< of a warp

 public:
  __device__ __forceinline__ TokenPairProducer(const Args& args, const Smem& smem,
                                               const KeepRow& rows)
      : args_(args), smem_(smem), rows_(rows), warp_(warp_index() - Shape::kWarps) {
    const PredictArgs& predict = args.predict;
    const long long head = key_head(args, rows.b, rows.h);
    keys_ = predict.estimate_k_values +
            (head * predict.k_padded + warp_ * kKeys) * Config::kHeadDim + lane_index() * 16;
    scale_ = predict.estimate_k_scale + head * predict.estimate_k_groups;
    if constexpr (Shape::kHasCoarseBound) unsure_ = unsure_of_scale(args.attend.scale);
    if constexpr (Config::kHasColumnBias)
      bias_ = predict.column_bias + query_head(args, rows.b, rows.h) * predict.k_padded;
  }

  __device__ __forceinline__ void run() const {
    StepRing<Shape, Smem> ring(smem_);
    PossibleSteps possible;
    for (int step = next(possible); step < steps(); step = next(possible)) {
      const Numbers numbers = read_numbers(step);
      ring.await_slot();
      copy_keys(step, ring.slot());
      cp_async_commit();
      write_numbers(numbers, step, ring.slot());
      ring.advance();
    }
    ring.drain();
    if (warp_ == 0 && lane_index() == 0) smem_.control().messages[ring.slot()] = {-1, 0};
    ring.announce();
  }

 private:
  __device__ __forceinline__ int steps() const {
    return ceil_div(args_.attend.n_k, Shape::kStepKeys);
  }

  // What StepWalk does (pipeline/step_walk.cuh), written out: with that class the machine code of
  // this kernel is another.
  /// Of the 32 steps from `first` on, a bit for each that the block sees and has not taken yet.
  struct PossibleSteps {
    int first = -32;
    u32 left = 0;
  };
  /// The next of them; steps() or more if there is none. Each lane asks about one step.
  __device__ __forceinline__ int next(PossibleSteps& possible) const {
    while (possible.left == 0) {
      possible.first += 32;
      if (possible.first >= steps()) return steps();
      const int mine = possible.first + lane_index();
      const bool sees = mine < steps() && sees_step<Config, Hooks>(args_, rows_, mine);
      possible.left = __ballot_sync(kAllLanes, sees);
    }
    const int step = possible.first + __ffs(static_cast<int>(possible.left)) - 1;
    possible.left &= possible.left - 1;
    return step;
  }

  /// The warp's keys; those past the end become zeros. Rows are contiguous on both sides: a pass
  /// copies 512 contiguous bytes, a chunk for each lane.
  __device__ __forceinline__ void copy_keys(int step, u32 slot) const {
    using Tile = typename Shape::KeyTile;
    constexpr int kPassRows = 32 / Tile::kChunks, kPasses = kKeys / kPassRows;
    constexpr int kPeriod = 8 / kPassRows;  // passes until chunks are permuted as before
    const signed char* const source =
        keys_ + static_cast<long long>(step) * (Shape::kStepKeys * Config::kHeadDim);
    const int left = args_.attend.n_k - step * Shape::kStepKeys - warp_ * kKeys;
    const int row = lane_index() / Tile::kChunks;
    u32 target[kPeriod];
#pragma unroll
    for (int n = 0; n < kPeriod; ++n)
      target[n] = smem_.keys(slot) + static_cast<u32>(warp_ * kKeys * Tile::kRowBytes) +
                  Tile::offset(n * kPassRows + row, lane_index() % Tile::kChunks);
    if (left >= kKeys) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass)
        cp_async_16(target[pass % kPeriod] + pass / kPeriod * kPeriod * 512, source + pass * 512,
                    true);
    } else {
#pragma unroll 1
      for (int pass = 0; pass < kPasses; pass += kPeriod) {
#pragma unroll
        for (int n = 0; n < kPeriod; ++n)
          cp_async_16(target[n] + pass * 512, source + (pass + n) * 512,
                      (pass + n) * kPassRows + row < left);
      }
    }
  }

  /// The first of a lane's two keys, within a step.
  __device__ __forceinline__ int first_key() const {
    return warp_ * kKeys + unit() * Shape::kUnitKeys + block() * 8 + quad_lane() * 2;
  }

  __device__ __forceinline__ Numbers read_numbers(int step) const {
    const int key = step * Shape::kStepKeys + first_key();
    Numbers numbers;
    // Past the end the scale may never have been written. It must not be 0, so that its product
    // with a bias of -inf stays -inf.
    numbers.scale = 1e-15f;
    const int first = key - block() * 8;
    if (first < args_.attend.n_k) numbers.scale = scale_[KeyGroups::of(first)];
    if constexpr (Config::kHasColumnBias)
      numbers.bias = *reinterpret_cast<const float2*>(bias_ + key);
    return numbers;
  }

  /// -inf for a column that does not exist or has a NaN, as it is never the largest. A bias out of
  /// range becomes infinite, and the step then counts as undecided.
  __device__ __forceinline__ static float in_units(float bias, float inverse, bool exists) {
    if (!exists || bias != bias || bias == -kInfinity) return -kInfinity;
    const float x = fabsf(bias * inverse);
    return x < kInfinity ? bias * inverse : kInfinity;
  }

  __device__ __forceinline__ void write_numbers(const Numbers& numbers, int step, u32 slot) const {
    auto& control = smem_.control();
    const int u = warp_ * kUnits + unit();
    auto& of_slot = control.numbers[slot];
    if (block() == 0) of_slot[Shape::kScale][quad_lane()][u] = numbers.scale;
    if constexpr (Config::kHasColumnBias) {
      const int left = args_.attend.n_k - step * Shape::kStepKeys - first_key();
      const float inverse = 1.0f / numbers.scale;
      const float2 bias = {in_units(numbers.bias.x, inverse, left > 0),
                           in_units(numbers.bias.y, inverse, left > 1)};
      *reinterpret_cast<float2*>(&control.bias[slot][u][quad_lane()][block() * 2]) = bias;
      if constexpr (Shape::kHasCoarseBound) {
        const float most = max_over_blocks(fmaxf(bias.x, bias.y));
        const float least = -max_over_blocks(fmaxf(-bias.x, -bias.y));
        const bool exists = most > -kInfinity;
        if (block() == 0) {
          of_slot[Shape::kInverse][quad_lane()][u] = exists ? inverse : 0.0f;
          of_slot[Shape::kMostBias][quad_lane()][u] = exists ? most : Shape::kNoBias;
          of_slot[Shape::kSpread][quad_lane()][u] =
              least > -kInfinity ? fmaf(inverse, unsure_, most - least) : kInfinity;
        }
      }
      float largest = 0.0f;
      if (bias.x > -kInfinity) largest = fabsf(bias.x);
      if (bias.y > -kInfinity) largest = fmaxf(largest, fabsf(bias.y));
      // Magnitudes are ordered like their bits.
      largest = __int_as_float(max_over_lanes(__float_as_int(largest)));
      if (lane_index() == 0) control.largest_bias[slot][warp_] = largest;
    }
    if (warp_ == 0) {
      const int team = lane_index();
      bool sees = false;
      if (team < Shape::kTeams) {
        const KeepRow rows = rows_of_team<Config>(args_, rows_, team);
        sees = rows.q0 <= rows.q1 && sees_step<Config, Hooks>(args_, rows, step);
      }
      const u32 teams = __ballot_sync(kAllLanes, sees);
      if (lane_index() == 0) control.messages[slot] = {step, teams};
    }
  }

  /// Where a lane's two keys are: the unit of the warp, the 8 keys of that unit, and the lane of a
  /// consumer's quad that reads them.
  static constexpr int kUnits = kKeys / Shape::kUnitKeys;
  __device__ __forceinline__ static int unit() { return lane_index() / 16; }
  __device__ __forceinline__ static int block() { return lane_index() / 4 % 4; }
  __device__ __forceinline__ static int quad_lane() { return lane_index() % 4; }
  static_assert(kUnits == 2 && Shape::kUnitKeys == 32);
  __device__ __forceinline__ static float max_over_blocks(float x) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 4));
    return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 8));
  }

  const Args& args_;
  const Smem smem_;
  const KeepRow& rows_;
  const int warp_;           ///< of the producers
  const signed char* keys_;  ///< a lane's first chunk
  const float* scale_;       ///< of the head
  const float* bias_ = nullptr;
  float unsure_ = 0.0f;  ///< see unsure_of_scale
};

}  // namespace lacuna
