// The products of a step in the 16-bit consumers of the wgmma family, S = Q K and O += P V. They
// are issued ahead of what waits for them.
#pragma once

#include "arch/multiply/wgmma.cuh"
#include "attend/wgmma/consumers/step_scores.cuh"
#include "attend/wgmma/scores/weight_fragments.cuh"
#include "tile/panel_product.cuh"

namespace lacuna {

/// Of a step whose tiles are decided about behind their exponentials (late_decision.cuh); its
/// product with V is due.
template <class Config, bool kExist = WgmmaShape<Config>::kWarpsKnow>
struct LateVotes {};
template <class Config>
struct LateVotes<Config, true> {
  bool is_due = false;  ///< it is to be decided
  u32 counts;           ///< tiles that count as far as the warp knows, a bit each
  float sum[WgmmaShape<Config>::kStepTiles][2];  ///< of the weights of each tile
};

/// Operands in registers.
template <class Config>
struct StepFragments {
  // Before the arrays: which registers the compiler takes depends on the order of members.
  bool has_fresh_row;                   ///< of this warp: it has no lagging maximum yet
  u32 query[Config::kHeadDim / 16][4];  ///< if they are kept
  u32 weights[Config::kStepKeys / 16][4];
  LateVotes<Config> late;
};

template <class State, class Fragments>
__device__ __forceinline__ void load_queries(const State& at, Fragments& fragments,
                                             const typename State::Queries& queries) {
  const u32 q = at.smem.queries(queries.slot(), at.warpgroup);
#pragma unroll
  for (int n = 0; n < State::Config::kHeadDim / 16; ++n)
    read_query_fragment<typename State::Shape::QueryTile>(fragments.query[n], q,
                                                          warp_of_warpgroup(), n);
}

/// Issues S = Q K of one group, whose keys begin `first` bytes into `k`; queries from registers.
template <class Element, class Step, int kSteps, int kBlocks>
__device__ __forceinline__ void multiply_kept_queries(float (&scores)[kBlocks][4],
                                                      const u32 (&query)[kSteps][4],
                                                      const OperandDescriptor& k, int first) {
#pragma unroll
  for (int n = 0; n + 4 <= kSteps; n += 4) {
    const unsigned long long keys_of[4] = {
        k.at(Step::along_step(n) + first), k.at(Step::along_step(n + 1) + first),
        k.at(Step::along_step(n + 2) + first), k.at(Step::along_step(n + 3) + first)};
    wgmma_four_from_registers<Element, Contiguous::kDepth>(scores, query + n, keys_of, n != 0);
  }
#pragma unroll
  for (int n = kSteps / 4 * 4; n < kSteps; ++n)
    wgmma_from_registers<Element, Contiguous::kDepth>(scores, query[n],
                                                      k.at(Step::along_step(n) + first), n != 0);
}

/// Issues S = Q K of the step whose keys are at `keys`, a commit for each group (and one on the
/// way where warpgroups look ahead). `fragments`: with the queries, where they are kept.
template <class State, class Fragments>
__device__ __forceinline__ void multiply_queries_keys(const State& at, const Fragments& fragments,
                                                      StepScores<typename State::Config>& scores,
                                                      u32 keys) {
  using Config = typename State::Config;
  using Shape = typename State::Shape;
  using Element = typename State::Element;
  using Step = typename Shape::StepTile;
  using Query = typename Shape::QueryTile;
  const auto q =
      Query::along_rows(uniform_over_warp(at.smem.queries(at.queries.slot(), at.warpgroup)));
  const auto k = Step::along_rows(keys);
#pragma unroll
  for (int g = 0; g < Shape::kGroups; ++g) {
    const int first = g * Shape::kGroupKeys * kPanelRowBytes;
    constexpr int kSteps = Config::kHeadDim / 16;
    if constexpr (Shape::kKeepsQueries) {
      multiply_kept_queries<Element, Step>(scores[g], fragments.query, k, first);
    } else {
#pragma unroll
      for (int n = 0; n < kSteps; ++n) {
        wgmma_from_smem<Element>(scores[g], q.at(Query::along_step(n)),
                                 k.at(Step::along_step(n) + first), n != 0);
        // Far enough for the other warpgroup to follow without a pause: its turn.
        if (Shape::kLooksAhead && n == kSteps * 3 / 8 - 1) wgmma_commit();
      }
    }
    wgmma_commit();
  }
}

/// Issues O += P V for the values at `values`, of the parts in kChosen, and commits.
template <u32 kChosen, class State, class Fragments>
__device__ __forceinline__ void multiply_chosen_values(State& at, const Fragments& fragments,
                                                       u32 values) {
  using Step = typename State::Shape::StepTile;
  const auto v = Step::across_rows(values);
  constexpr int kPartSteps = State::Shape::kPartOfStepKeys / 16;
  wgmma_begin();
#pragma unroll
  for (int n = 0; n < State::Config::kStepKeys / 16; n += 4) {
    if ((kChosen >> n / kPartSteps & 1) == 0) continue;
    const unsigned long long values_of[4] = {
        v.at(Step::across_step(n)), v.at(Step::across_step(n + 1)), v.at(Step::across_step(n + 2)),
        v.at(Step::across_step(n + 3))};
    wgmma_four_from_registers<typename State::Element, Contiguous::kColumns>(
        at.output, fragments.weights + n, values_of, true);
  }
  wgmma_commit();
}

/// The same of the parts whose weights count.
template <class State, class Fragments>
__device__ __forceinline__ void multiply_values(State& at, const Fragments& fragments, u32 values) {
  if constexpr (State::Shape::kHasGate) {
    with_chosen_groups(at.has_weights, [&](auto chosen) {
      multiply_chosen_values<decltype(chosen)::kValue>(at, fragments, values);
    });
  } else {
    multiply_chosen_values<(1u << State::Shape::kParts) - 1>(at, fragments, values);
  }
}

/// O is complete, and the values in `slot` are no longer needed.
template <class State>
__device__ __forceinline__ void take_output(State& at, const typename State::Values& slot) {
  wgmma_wait<0>();
  fence_accumulator(at.output);
  at.release_values(slot);
}

}  // namespace lacuna
