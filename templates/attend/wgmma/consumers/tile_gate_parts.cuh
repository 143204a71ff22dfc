// A step of a TileGateConsumer, part by part: 64 keys, a tile or half of one, are weighed and
// multiplied with their values if they count.
#pragma once

#include "attend/wgmma/consumers/tile_gate_votes.cuh"
#include "attend/wgmma/scores/weight_fragments.cuh"

namespace lacuna {

template <class Config>
struct StepParts {
  static constexpr int kKeys = WgmmaShape<Config>::kPartKeys;
  static constexpr int kCount = Config::kStepKeys / kKeys;
  static constexpr int kSteps = kKeys / 16;  ///< of the product's depth
  static_assert(!WgmmaShape<Config>::kLooksAhead || kCount <= 2,
                "products with V are spelled out for two");
  using Weights = u32[kSteps][4];
};

/// The lagging maximum follows the maxima of the parts that count, if one may have outgrown it. The
/// warp's largest score, which is known, mostly says that none has.
template <class State, class Own>
__device__ __forceinline__ void follow_maxima(State& at, Own& own,
                                              const StepScores<typename State::Config>& scores,
                                              u32 chosen) {
  using Parts = StepParts<typename State::Config>;
  const float outgrown_log2 = fmaf(own.warp_max, at.to_log2, -own.least_lagging_max);
  if (__builtin_expect(outgrown_log2 <= WeightRange<typename State::Element>::kSlackLog2, true))
    return;
  float maxima[2] = {-kInfinity, -kInfinity};
#pragma unroll
  for (int p = 0; p < Parts::kCount; ++p) {
    if ((chosen >> p & 1) == 0) continue;
    float of_part[2];
    row_maxima(of_part, part_of<Parts::kKeys>(scores, p));
    maxima[0] = fmaxf(maxima[0], of_part[0]);
    maxima[1] = fmaxf(maxima[1], of_part[1]);
  }
  float decay[2];
  raise_lagging_max(at.softmax, decay, maxima, at.to_log2);
  follow_lagging_max(at.output, decay);
  own.least_lagging_max =
      -max_over_lanes(fmaxf(-at.softmax.lagging_max[0], -at.softmax.lagging_max[1]));
}

/// Scores -> weights in place, of one part.
template <int kPart, class State>
__device__ __forceinline__ void weigh_part(State& at, StepScores<typename State::Config>& scores) {
  const float offset[2] = {at.softmax.offset(0), at.softmax.offset(1)};
  exponentiate(at.softmax.sum, part_of<StepParts<typename State::Config>::kKeys>(scores, kPart),
               offset, at.to_log2);
}

template <int kPart, class Config>
__device__ __forceinline__ void pack_part(typename StepParts<Config>::Weights& weights,
                                          const StepScores<Config>& scores) {
  using Parts = StepParts<Config>;
  const auto& part = part_of<Parts::kKeys>(scores, kPart);
#pragma unroll
  for (int n = 0; n < Parts::kSteps; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[n][i] = weight_pair<typename Config::Element>(part + n * 2, i);
      pin(weights[n][i]);
    }
  }
}

/// O += P V of one part, issued.
template <class State, class Own>
__device__ __forceinline__ void multiply_part(
    State& at, const Own& own, const typename StepParts<typename State::Config>::Weights& weights,
    u32 part) {
  using Parts = StepParts<typename State::Config>;
  using Step = typename State::Shape::StepTile;
  static_assert(Parts::kSteps == 4);
  const u32 rows = part * (Parts::kKeys * kPanelRowBytes);
  const auto v = Step::across_rows(uniform_over_warp(at.smem.values(own.values.slot()) + rows));
  const unsigned long long values_of[4] = {v.at(Step::across_step(0)), v.at(Step::across_step(1)),
                                           v.at(Step::across_step(2)), v.at(Step::across_step(3))};
  wgmma_begin();
  wgmma_four_from_registers<typename State::Element, Contiguous::kColumns>(at.output, weights,
                                                                           values_of, true);
  wgmma_commit();
}

template <class State>
__device__ __forceinline__ void take_product(State& at) {
  wgmma_wait<0>();
  fence_accumulator(at.output);
}

/// Scores -> the weights of the last part that counts, whose product with V is due; that of the
/// other is complete then, and so is all that was issued before.
template <class State, class Own, class Wait>
__device__ __forceinline__ void weigh_chosen(
    State& at, Own& own, typename StepParts<typename State::Config>::Weights& weights,
    StepScores<typename State::Config>& scores, u32 chosen, Wait wait) {
  using Config = typename State::Config;
  constexpr int kLast = StepParts<Config>::kCount - 1;
  follow_maxima(at, own, scores, chosen);
  if (chosen == 2) {
    weigh_part<kLast>(at, scores);
    pack_part<kLast, Config>(weights, scores);
    wait();
  } else {
    weigh_part<0>(at, scores);
    pack_part<0, Config>(weights, scores);
    wait();
    if (chosen != 1) {
      at.await(at.smem.control()->v_full, own.values);
      multiply_part(at, own, weights, 0);
      weigh_part<kLast>(at, scores);
      take_product(at);
      pack_part<kLast, Config>(weights, scores);
    }
  }
  at.await(at.smem.control()->v_full, own.values);
}

/// The same where no other product is in flight: its own too, from scores to O.
template <int kPart, class State, class Own>
__device__ __forceinline__ void attend_last_part(State& at, Own& own,
                                                 StepScores<typename State::Config>& scores) {
  using Config = typename State::Config;
  typename StepParts<Config>::Weights weights;
  weigh_part<kPart>(at, scores);
  pack_part<kPart, Config>(weights, scores);
  at.await(at.smem.control()->v_full, own.values);
  multiply_part(at, own, weights, kPart);
  take_product(at);
}

/// Those of the step whose product is complete; the ring of values has no place for others.
template <class State, class Own>
__device__ __forceinline__ void release_part_values(const State& at, Own& own) {
  if (own.lane() == 0) State::Smem::barrier(at.smem.control()->v_empty[own.values.slot()]).arrive();
  own.values.advance();
}

template <int kBlocks>
__device__ __forceinline__ void copy_scores(float (&to)[1][kBlocks][4],
                                            const float (&from)[1][kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[0][n][i] = from[0][n][i];
  }
}

}  // namespace lacuna
