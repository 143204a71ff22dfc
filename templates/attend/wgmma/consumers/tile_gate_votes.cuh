// What a TileGateConsumer keeps, and what its warps say of the scores of a step: the largest of
// each tile, for the producer that decides.
#pragma once

#include "arch/redux.cuh"
#include "attend/wgmma/consumers/step_products.cuh"
#include "base/ordered_bits.cuh"

namespace lacuna {

/// Beside its ConsumerState.
template <class Config>
struct TileGateState {
  int thread;               ///< of the block; the first warps are the consumers
  int least_bits;           ///< no maximum if rows do not exist, which only careful votes know
  float warp_max;           ///< the warp's largest score in the step to be decided about
  float least_lagging_max;  ///< of the warp's rows
  int last_row;             ///< of the query tile, counted from this warp's first
  RingPosition<Config::kValueStages> values;  ///< of the next step that has any

  __device__ __forceinline__ int lane() const {
    return static_cast<int>(static_cast<u32>(thread) % 32);
  }
};

template <class State, class Own>
__device__ __forceinline__ void publish_maxima(const State& at, Own& own,
                                               const typename State::Shape::Vote& vote,
                                               const typename State::Ring& slot, bool is_sure) {
  constexpr int kTiles = State::Shape::kStepTiles;
  own.warp_max = float_of_ordered(kTiles == 1 ? vote.tile_max[0]
                                              : max(vote.tile_max[0], vote.tile_max[kTiles - 1]));
  __syncwarp();
  if (own.lane() == 0 && is_sure) {
    at.smem.control()->votes[slot.slot()][own.thread / 32] = vote;
    State::Smem::barrier(at.smem.control()->polled[slot.slot()]).arrive();
  }
}

/// Publishes the warp's maxima. False: these scores need take_scores_with_max, and nothing was
/// published. Rare work stands behind both branches of a step, so that the instructions of the
/// usual path lie close together.
template <class State, class Own>
__device__ __forceinline__ bool take_scores(const State& at, Own& own,
                                            StepScores<typename State::Config>& scores,
                                            const typename State::Message& step,
                                            const typename State::Ring& slot) {
  using Config = typename State::Config;
  fence_accumulator(scores[0]);
  if constexpr (Config::kHasScore) complete_step(at, scores, step);
  typename State::Shape::Vote vote;
  bool is_sure = Config::kHasScore || !step.has(State::Message::kNeedsMaskOrReport);
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    vote.tile_max[t] =
        max_over_lanes(lane_maximum_bits(part_of<Config::kTileK>(scores, t), own.least_bits));
    is_sure = is_sure && is_maximum(vote.tile_max[t]);
  }
  publish_maxima(at, own, vote, slot, is_sure);
  return is_sure;
}

/// The same of any scores.
template <class State, class Own>
__device__ __forceinline__ void take_scores_with_max(const State& at, Own& own,
                                                     StepScores<typename State::Config>& scores,
                                                     const typename State::Message& step,
                                                     const typename State::Ring& slot) {
  using Config = typename State::Config;
  if (!Config::kHasScore && step.has(State::Message::kNeedsMaskOrReport))
    complete_step(at, scores, step);
  fence_accumulator(scores[0]);  // or the branch above makes copies, as floats and as bits
  typename State::Shape::Vote vote;
#pragma unroll
  for (int t = 0; t < State::Shape::kStepTiles; ++t) {
    float maxima[2];
    lane_maxima(maxima, part_of<Config::kTileK>(scores, t));
    // The larger of a lane's two rows, without those behind the last query.
    const int row = own.lane() / 4;
    const float largest = fmaxf(row <= own.last_row ? maxima[0] : -kInfinity,
                                row + 8 <= own.last_row ? maxima[1] : -kInfinity);
    vote.tile_max[t] = max_over_lanes(ordered_bits(largest));
  }
  publish_maxima(at, own, vote, slot, true);
}

/// The parts that count, a bit each. All lanes read the same word, but the compiler does not know
/// it. No vote tells it so here, because in most steps no part counts, and to compare with 0 is
/// quicker than a vote.
template <class State>
__device__ __forceinline__ u32 decision(const State& at, const typename State::Ring& slot) {
  at.await(at.smem.control()->decided, slot);
  return at.smem.control()->chosen[slot.slot()];
}

}  // namespace lacuna
