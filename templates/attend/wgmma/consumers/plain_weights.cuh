// What the 16-bit consumers of the wgmma family do with the scores of a step whose weights have no
// denominator (attention.normalise "sigmoid" or "none"): formula and mask, then each weight by
// itself. No weight is relative to another, so there is no maximum, and O never decays.
#pragma once

#include "attend/wgmma/consumers/step_softmax.cuh"

namespace lacuna {

/// Scores of a lane, in weight_unit, -> weights.
template <class State, int kBlocks>
__device__ __forceinline__ void weigh_each(const State& at, float (&scores)[kBlocks][4]) {
  using Config = typename State::Config;
  constexpr WeightKind kKind = weight_kind<Config>();
  if constexpr (kKind != WeightKind::kSigmoid && Config::kHasScore) return;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& score = scores[n][i];
      if constexpr (kKind == WeightKind::kSigmoid) {
        score = sigmoid_approx(score, Config::kHasScore ? 1.0f : at.to_log2);
      } else {
        score *= at.unit();
      }
    }
  }
}

/// Scores of a step -> weights; `pending` later products are under way.
template <class State>
__device__ __forceinline__ void weigh_plainly(State& at, StepScores<typename State::Config>& scores,
                                              const typename State::Message& step, int pending) {
  static_assert(State::Shape::kGroups == 1, "of a step that no gate divides");
  const StepScoreParts<State> parts = step_score_parts(at, step);
  const StepMask<State> mask = step_mask(at, step);
  const auto ranges = step_ranges(at, step);
  await_products(at, scores, 0, pending);
  // Written twice, so that in most steps weights overlap the formulas.
  if (__builtin_expect(mask.is_usual(step), true)) {
    apply_formula(at, scores, parts, step);
    apply_step_mask<State>(scores, mask);
    weigh_each(at, scores[0]);
  } else {
    complete_group(at, scores, 0, step, true, ranges);
    weigh_each(at, scores[0]);
  }
}

}  // namespace lacuna
