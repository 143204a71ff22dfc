// What the 16-bit consumer of the wgmma family finds out about the mask of a step while its
// products are under way.
#pragma once

#include "attend/wgmma/consumers/step_scores.cuh"
#include "pipeline/work_tile_args.cuh"

namespace lacuna {

/// The row that formulas ask about. A loop in a loop has no registers left for it.
template <class State>
__device__ __forceinline__ typename State::Row row_of_formulas(const State& at) {
  return State::Shape::kOwnRows || has_sequence_tiles<typename State::Config>() ? at.reload_row()
                                                                                : at.row;
}

/// The ranges of a step with a mask that reads parameters: they depend on no product, and are read
/// while these are under way.
template <class State>
__device__ __forceinline__ auto step_ranges(const State& at, const typename State::Message& step) {
  using Config = typename State::Config;
  using Hooks = typename State::Hooks;
  if constexpr (kReadsKeyRanges<Config, Hooks>) {
    LaneRanges<Hooks> ranges;
    if (step.has(State::Message::kNeedsMaskOrReport)) {
      const typename State::Row row = row_of_formulas(at);
      decltype(auto) args = args_of_work_tile<Config>(at.args, row);
#pragma unroll
      for (int r = 0; r < 2; ++r)
        ranges.rows[r] = ranges_of_row<Hooks>(args, at.lane_rows(row), r, row.b);
    }
    return ranges;
  } else {
    return UnreadRanges{};
  }
}

/// Are the conditions of a mask asked before the products of a step are complete? There are no
/// registers for several conditions beside distances of a score formula.
template <class State>
__host__ __device__ constexpr bool asks_conditions_ahead() {
  using Config = typename State::Config;
  using Hooks = typename State::Hooks;
  if constexpr (State::Shape::kHasGate || !kHasKeyRanges<Config, Hooks> ||
                !cuts_most_tiles<typename Hooks::MaskRow>()) {
    return false;
  } else {
    return kIsDistanceCondition<Hooks> || !holds_distances<Config, Hooks>();
  }
}
template <class State>
inline constexpr bool kAsksConditionsAhead = asks_conditions_ahead<State>();

/// What is known of the mask of a step of one group before its products are complete.
template <class State, bool kOfConditions = kAsksConditionsAhead<State>>
struct StepMask {
  /// All scores count, and nobody wants a report.
  __device__ __forceinline__ bool is_usual(const typename State::Message& step) const {
    return !step.has(State::Message::kNeedsMaskOrReport);
  }
};
template <class State>
struct StepMask<State, true> {
  /// Of the warp: ranges leave out keys, too; reports are wanted; no mask is needed.
  bool is_other;
  __device__ __forceinline__ bool is_usual(const typename State::Message&) const {
    return !is_other;
  }
  MaskBits<typename State::Hooks, State::Config::kTileK / 8> of_tile[State::Shape::kStepTiles];
};

template <class State>
__device__ __forceinline__ StepMask<State> step_mask(const State& at,
                                                     const typename State::Message& step) {
  using Config = typename State::Config;
  using Hooks = typename State::Hooks;
  StepMask<State> mask = {};
  if constexpr (kAsksConditionsAhead<State>) {
    constexpr int kTileBlocks = Config::kTileK / 8;
    if (!step.has(State::Message::kNeedsMaskOrReport)) {
      for (auto& bits : mask.of_tile) bits = MaskBits<Hooks, kTileBlocks>::all();
      mask.is_other = !Config::kHasScore;  // else its formula is among the exponentials here, too
      return mask;
    }
    const typename State::Row row = row_of_formulas(at);
    decltype(auto) args = args_of_work_tile<Config>(at.args, row);
    const auto lane = at.lane_rows(row);
    bool is_other = wants_report(args.attend);
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t) {
      const int k = first_key_of_lane(args, step.tiles[t], at.tile_keys());
      mask.of_tile[t] = mask_bits<Hooks, kTileBlocks>(args, lane, k, row.b);
      is_other = is_other || leaves_out_keys<Hooks, kTileBlocks>(args, lane, k, row.b);
    }
    mask.is_other = __any_sync(kAllLanes, is_other) != 0;
  }
  return mask;
}

/// The usual mask.
template <class State>
__device__ __forceinline__ void apply_step_mask(StepScores<typename State::Config>& scores,
                                                const StepMask<State>& mask) {
  if constexpr (kAsksConditionsAhead<State>) {
    constexpr int kTileBlocks = State::Config::kTileK / 8;
#pragma unroll
    for (int t = 0; t < State::Shape::kStepTiles; ++t)
      apply_mask_bits<weight_kind<typename State::Config>()>(scores[0] + t * kTileBlocks,
                                                             mask.of_tile[t]);
  }
}

}  // namespace lacuna
