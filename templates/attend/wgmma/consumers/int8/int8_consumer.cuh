// A consumer warpgroup of the wgmma family with int8 queries and keys: 64 query rows of each work
// tile. Values are e4m3, or of 16 bits (attend/wgmma/scores/e4m3_values.cuh).
//
// Products are issued as in consumer.cuh. A row that exceeds its lagging maximum by more than the
// format of the weights allows (scores/lazy_max.cuh) raises it, and lowers all that came before:
//
//   S_0 = Q K_0, its softmax
//   for each further step:   S' = Q K, O += P V     issued
//                            S' is complete: its maxima, and half of its exponentials
//                            O is complete: the other half, P = S'
//   O += P V
#pragma once

#include "attend/wgmma/consumers/int8/int8_gate.cuh"
#include "attend/wgmma/consumers/int8/int8_steps.cuh"
#include "attend/wgmma/consumers/int8/int8_values.cuh"
#include "attend/wgmma/consumers/work_tiles.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class Int8Consumer {
  using State = ConsumerState<Config, Hooks, Args>;
  using Shape = WgmmaShape<Config>;
  using Message = typename Shape::Message;
  using Units = ScoreUnits<Config>;
  using Values = WeightedValues<Config>;
  using Maxima = LaneMaxima<Config>;
  static constexpr bool kIntegersServe = kIntegersAreScores<Config>;

 public:
  __device__ __forceinline__ Int8Consumer(const Args& args, const WgmmaSmem<Config>& smem,
                                          int warpgroup)
      : at_(args, smem, warpgroup) {}

  __device__ __forceinline__ void run() {
    for_each_row(at_, [this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    at_.await(at_.smem.control()->q_full, at_.queries);
    quantised_.begin_row(at_.args, at_.row, thread_of_row<Config>() / 32,
                         first_row_of_warp<Config>(at_.row));
    for_each_run(at_, step, [this](Message& first) { attend_run(first); });
  }

  /// From `step` on to the end of the row, or to a step that is passed on, which `step` then is.
  __device__ __forceinline__ void attend_run(Message& step) {
    StepScores<Config> scores;
    weigh_step<true>(scores, step);
    at_.finish_store();
    while (!step.has(Message::kLastOfRow)) {
      step = kIntegersServe ? at_.smem.message(at_.keys.slot(), at_.warpgroup) : at_.receive();
      if (Shape::kOwnRows && step.has(Message::kSkipped) &&
          !passes_within_run(at_, step, due_step_))
        break;
      weigh_step<false>(scores, step);
    }
    const typename State::Ring slot = due_before({uniform_over_warp(at_.keys.count)});
    multiply_values(at_, values_, due_, slot);
    complete_values(at_, values_, slot, {1.0f, 1.0f});
  }

  /// The step whose product with V is due. `next`: the one behind it, but for those passed on.
  __device__ __forceinline__ typename State::Ring due_before(
      const typename State::Ring& next) const {
    if constexpr (Shape::kOwnRows) return {uniform_over_warp(due_step_.count)};
    return next.before();
  }

  /// Scores of a step -> unpacked weights, while the previous step's product with V runs.
  template <bool kFirst>
  __device__ __forceinline__ void weigh_step(StepScores<Config>& scores, const Message& step) {
    const typename State::Ring slot{uniform_over_warp(at_.keys.count)};  // for all addresses
    StepScores<Config, int> sums;
    wgmma_begin();
    multiply_integers(at_, sums, at_.smem.keys(slot.slot()));
    Units units = quantised_.read(at_.args, step);
    if constexpr (!kFirst) multiply_values(at_, values_, due_, due_before(slot));
    ColumnBiases<Config> biases;
    read_column_biases(at_, biases);
    take_sums<kFirst>(at_, sums);
    quantised_.complete(units);
    Maxima maxima;
    if constexpr (!Units::kHasUnitScores) find_maxima<Config, int>(quantised_, maxima, sums, units);
    if constexpr (kIntegersServe && !kFirst) {
      if (__builtin_expect(!step.has(Message::kNeedsMaskOrReport), true)) {
        weigh<kFirst>(scores, sums, maxima, units, step);
        return;
      }
    }
    to_scores(at_, quantised_, scores, sums, units, biases);
    if (Units::kHasUnitScores || __builtin_expect(step.has(Message::kNeedsMaskOrReport), false)) {
      if (Config::kHasScore || step.has(Message::kNeedsMaskOrReport))
        complete_step(at_, scores, step);
      find_maxima<Config, float>(quantised_, maxima, scores, units);
    }
    weigh<kFirst>(scores, scores, maxima, units, step);
  }

  /// Scores, floating-point or integer, -> unpacked weights of all groups that the gate lets pass.
  /// Half of the exponentials run beside the previous step's product, half beside its additions.
  template <bool kFirst, class Number>
  __device__ __forceinline__ void weigh(StepScores<Config>& weights,
                                        StepScores<Config, Number>& scores, const Maxima& maxima,
                                        const Units& units, const Message& step) {
    constexpr bool kIsSum = kIsInteger<Number>;
    float step_max[2] = {-kInfinity, -kInfinity};
    bool takes_part[Shape::kGroups];
    ask_gate<kFirst>(at_, takes_part, step_max, maxima, step);
    LaneVotes<Config> votes;
    const bool is_outgrown = find_votes(at_, votes, maxima, step_max, Values::kSlackLog2);
    float decay[2] = {1.0f, 1.0f};
    if (kFirst || __builtin_expect(is_outgrown, false)) {
      float row_max[2];
      find_row_maxima(at_, votes, row_max, maxima, step_max);
      raise_lagging_max(at_.softmax, decay, row_max, at_.to_log2);
      values_.template follow<kFirst>(at_.output, decay);
    }
    float offset[2];
    find_offsets(at_, quantised_, offset, Values::kRangeLog2);
    constexpr int kBlocks = Config::kStepKeys / 8;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (Shape::kVotesOnSteps && block == kBlocks / 4)
        publish_votes<kFirst>(at_, due_, votes, step,
                              kIsSum || !step.has(Message::kNeedsMaskOrReport));
      if (block == kBlocks / 2) {
        if constexpr (kIntegersServe) await_next_keys(at_);
        if (!kFirst)
          complete_values(at_, values_, due_before(at_.keys.before()), decay);  // keys are released
        if constexpr (kIntegersServe && !kFirst) {
          offset[0] = behind(offset[0], at_.output[0][0]);
          offset[1] = behind(offset[1], at_.output[0][2]);
        }
      }
      const int g = block / Shape::kGroupBlocks, n = block % Shape::kGroupBlocks;
      if (Config::kSkipsExp && !takes_part[g]) continue;
      exponentiate_block(at_.softmax, weights[g][n], scores[g][n],
                         units.unit_of(block) * at_.to_log2, offset);
      // The product no longer reads the weights before: the first half is packed under the second.
      if (!Config::kSkipsExp && block >= kBlocks / 2 && (block + 1) % Values::kStepBlocks == 0)
        values_.take(weights, (block - kBlocks / 2) / Values::kStepBlocks);
    }
#pragma unroll
    for (int n = Config::kSkipsExp ? 0 : Values::kSteps / 2; n < Values::kSteps; ++n)
      values_.take(weights, n);
    due_step_ = at_.keys.before();
    if constexpr (!kIsSum && !Shape::kHasGate) {
      if (__builtin_expect(step.has(Message::kNeedsMaskOrReport), false)) report_step(at_, step);
    }
  }

  State at_;
  QuantisedScores<Config> quantised_;
  Values values_;
  DueVotes<Config> due_;
  typename State::Ring due_step_;  ///< of a work tile of its own, the step of these weights
};

}  // namespace lacuna
