// What an Int8Consumer does with a step: S = Q K in integers, then scores or logits, their maxima
// and exponentials.
#pragma once

#include "attend/wgmma/consumers/int8/int8_gate.cuh"
#include "attend/wgmma/consumers/step_scores.cuh"
#include "attend/wgmma/scores/int8_scores.cuh"

namespace lacuna {

/// May the softmax take integer sums as they are, in steps without a mask? Code for both kinds of
/// scores is then generated, except for the first step of a row, to save time of compilation. With
/// a scale for each thread there are no registers for this.
template <class Config>
inline constexpr bool kIntegersAreScores =
    !ScoreUnits<Config>::kHasUnitScores && !ScoreUnits<Config>::kByThread;

/// Issues S = Q K of the step whose keys are at `keys`, and commits. One product whatever the
/// groups, which all are waited for together: a narrow one reads as much of the queries.
template <class State>
__device__ __forceinline__ void multiply_integers(const State& at,
                                                  StepScores<typename State::Config, int>& sums,
                                                  u32 keys) {
  using Config = typename State::Config;
  using Query = typename State::Shape::QuerySlot::Tile;
  using Key = typename State::Shape::KeySlot::Tile;
  const auto q =
      Query::along_rows(uniform_over_warp(at.smem.queries(at.queries.slot(), at.warpgroup)));
  const auto k = Key::along_rows(keys);
  auto& all = *reinterpret_cast<int(*)[Config::kStepKeys / 8][4]>(&sums[0][0]);
#pragma unroll
  for (int n = 0; n < Config::kHeadDim / 32; ++n) {
    wgmma_from_smem_s8(all, q.at(Query::along_step(n)), k.at(Key::along_step(n)), n != 0);
  }
  wgmma_commit();
}

/// Waits for the product with the keys and gives their slot back. kFirst: no other product is under
/// way.
template <bool kFirst, class State>
__device__ __forceinline__ void take_sums(State& at,
                                          StepScores<typename State::Config, int>& sums) {
  wgmma_wait(kFirst ? 0 : 1);
#pragma unroll
  for (int g = 0; g < State::Shape::kGroups; ++g) fence_accumulator(sums[g]);
  at.release_keys();
}

/// Waits until the keys of the next step are there, whatever row it belongs to.
///
/// This wait has to stay behind the exponentials computed so far, and ahead of the wait for the
/// product that follows. ptxas moves both across anything but a branch that depends on them, so the
/// address of the barrier depends on the sums of the exponentials: an offset is added if they are
/// negative, which they never are. A vote makes the address the same in all lanes. Without it the
/// compiler assumes that the warp diverges here, and reconverges it again and again (5 % of the
/// time).
template <class State>
__device__ __forceinline__ void await_next_keys(const State& at) {
  const bool is_negative = at.softmax.sum[0] + at.softmax.sum[1] < 0.0f;
  const Mbarrier full = State::Smem::barrier(at.smem.control()->k_full[at.keys.slot()]);
  Mbarrier{full.address + (__any_sync(kAllLanes, is_negative) ? 8u : 0u)}.wait(at.keys.phase());
}

/// x, but only after y was computed: the compiler cannot move what follows ahead of y. Compares
/// against one fixed NaN pattern; any would do.
__device__ __forceinline__ float behind(float x, float y) {
  return __float_as_uint(y) == 0xffffdeadu ? y : x;
}

/// The biases that came with the keys of the step under way.
template <class State>
__device__ __forceinline__ void read_column_biases(const State& at,
                                                   ColumnBiases<typename State::Config>& biases) {
  using Config = typename State::Config;
  if constexpr (Config::kHasColumnBias) {
    const float* of_lane = at.smem.control()->column_bias[at.keys.slot()] + lane_index() % 4 * 2;
#pragma unroll
    for (int block = 0; block < Config::kStepKeys / 8; ++block)
      biases[block] = *reinterpret_cast<const float2*>(of_lane + block * 8);
  }
}

/// Integer sums of a step to scores.
template <class State, class Quantised, class Units>
__device__ __forceinline__ void to_scores(const State& at, const Quantised& quantised,
                                          StepScores<typename State::Config>& scores,
                                          StepScores<typename State::Config, int>& sums,
                                          const Units& units,
                                          const ColumnBiases<typename State::Config>& biases) {
  using Config = typename State::Config;
  using Shape = typename State::Shape;
#pragma unroll
  for (int g = 0; g < Shape::kGroups; ++g) {
#pragma unroll
    for (int n = 0; n < Shape::kGroupBlocks; ++n) {
      const int block = g * Shape::kGroupBlocks + n;
      float2 bias = {0.0f, 0.0f};
      if constexpr (Config::kHasColumnBias) bias = biases[block];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[g][n][i] = static_cast<float>(sums[g][n][i]);
        if constexpr (Units::kHasUnitScores) {
          float added = i % 2 == 0 ? bias.x : bias.y;
          if constexpr (Config::kHasScore) added += quantised.row_bias(i / 2);
          scores[g][n][i] = fmaf(scores[g][n][i], units.scale_of(block), added);
        }
      }
    }
  }
}

/// What scores leave out of their logits.
template <class Config>
__device__ __forceinline__ float folded_bias(const QuantisedScores<Config>& quantised, int r) {
  return Config::kHasScore ? 0.0f : quantised.row_bias(r);
}

template <class Config, class Accumulator>
__device__ __forceinline__ void find_maxima(const QuantisedScores<Config>& quantised,
                                            LaneMaxima<Config>& maxima,
                                            const StepScores<Config, Accumulator>& scores,
                                            const ScoreUnits<Config>& units) {
#pragma unroll
  for (int g = 0; g < WgmmaShape<Config>::kGroups; ++g) {
    find_logit_maxima(maxima[g], scores[g], units, g);
#pragma unroll
    for (int r = 0; r < 2; ++r) maxima[g][r] += folded_bias(quantised, r);
  }
}

/// What is subtracted from scores in log2; weights are then times 2 to `range_log2`.
template <class State, class Quantised>
__device__ __forceinline__ void find_offsets(const State& at, const Quantised& quantised,
                                             float (&offset)[2], float range_log2) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
    offset[r] = at.softmax.offset(r) - range_log2 - folded_bias(quantised, r) * at.to_log2;
}

template <class Accumulator>
__device__ __forceinline__ void exponentiate_block(LazyMax& softmax, float (&weights)[4],
                                                   const Accumulator (&scores)[4], float unit,
                                                   const float (&offset)[2]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    weights[i] = exp2_approx(fmaf(static_cast<float>(scores[i]), unit, -offset[i / 2]));
#pragma unroll
  for (int r = 0; r < 2; ++r) softmax.sum[r] += weights[2 * r] + weights[2 * r + 1];
}

}  // namespace lacuna
