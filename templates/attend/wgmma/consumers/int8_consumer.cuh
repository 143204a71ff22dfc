// A consumer warpgroup of the wgmma family with int8 queries and keys: 64 query rows of each row
// of tiles. Values are e4m3, or of 16 bits.
//
// Products are issued as in attend/wgmma/consumers/consumer.cuh. Each step's maxima are held
// against the reference, and where a row has outgrown it, it is raised, and what is older follows.
// A gate, which compares with the true running maximum, has its own. One that is about products
// with V alone is mostly asked late (attend/wgmma/gates/step_votes.cuh): when the next step's
// scores are under way, before that product is issued.
#pragma once

#include "attend/wgmma/consumers/consumer_base.cuh"
#include "attend/wgmma/scores/e4m3_values.cuh"
#include "attend/wgmma/scores/int8_scores.cuh"
#include "attend/wgmma/scores/wgmma_scores.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class Int8Consumer : ConsumerBase<Config, Hooks, Args> {
  using Rows = ConsumerBase<Config, Hooks, Args>;
  using Rows::args_, Rows::smem_, Rows::warpgroup_, Rows::to_log2_, Rows::row_;
  using Rows::await, Rows::receive, Rows::release_keys, Rows::release_values;
  using Rows::finish_store, Rows::first_row, Rows::report_step;
  using Rows::gate_, Rows::gate_row_, Rows::votes_;
  using Rows::queries_, Rows::keys_, Rows::has_weights_, Rows::softmax_, Rows::output_;
  using typename Rows::Message;
  using typename Rows::Ring;
  using typename Rows::Shape;
  using typename Rows::Smem;
  using Units = ScoreUnits<Config>;
  using Values = WeightedValues<Config>;
  using Scores = float[Shape::kGroups][Shape::kGroupBlocks][4];
  /// Are integers scores where no mask has a say? The softmax then stands twice, but for the first
  /// step of a row, as each takes its time to compile; many scales leave no registers for that.
  static constexpr bool kIntegersServe = !Units::kScoresAreLogits && !Units::kByThread;
  using Sums = int[Shape::kGroups][Shape::kGroupBlocks][4];
  /// Of what a lane has of each group, as logits.
  using Maxima = float[Shape::kGroups][2];
  /// What a lane has to say of each group to a gate.
  using LaneVotes = GateStatistics[Shape::kGroups];

 public:
  /// `warpgroup`: 0 .. kWarpgroups - 1.
  __device__ __forceinline__ Int8Consumer(const Args& args, const Smem& smem, int warpgroup)
      : Rows(args, smem, warpgroup) {}

  __device__ __forceinline__ void run() {
    this->for_each_row([this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    await(smem_.control()->q_full, queries_);
    quantised_.begin_row(args_, row_, this->thread_of_row() / 32, first_row(row_));
    this->for_each_run(step, [this](Message& first) { attend_run(first); });
  }

  /// From `step` on to the end of the row, or to a step that is passed on, which `step` then is.
  __device__ __forceinline__ void attend_run(Message& step) {
    Scores scores;
    weigh_step<true>(scores, step);
    finish_store();
    while (!step.has(Message::kLastOfRow)) {
      step = kIntegersServe ? smem_.message(keys_.slot(), warpgroup_) : receive();
      if (Shape::kOwnRows && step.has(Message::kSkipped)) break;
      weigh_step<false>(scores, step);
    }
    const Ring values{uniform_over_warp(keys_.count - 1)};
    multiply_values(values);
    complete_values(values, {1.0f, 1.0f});
  }

  /// Scores of a step -> unpacked weights. Except in the first step, the previous step's product
  /// with V runs at the same time, and is complete when this returns.
  template <bool kFirst>
  __device__ __forceinline__ void weigh_step(Scores& scores, const Message& step) {
    // All addresses follow from one number that is known to be uniform.
    const Ring at{uniform_over_warp(keys_.count)};
    Sums sums;
    wgmma_begin();
    multiply_queries_keys(sums, smem_.keys(at.slot()));
    Units units = quantised_.read(args_, step);
    if constexpr (!kFirst) multiply_values(at.before());
    take_sums<kFirst>(sums, units);
    Maxima maxima;
    if constexpr (!Units::kScoresAreLogits) find_maxima(maxima, sums, units);
    if constexpr (kIntegersServe && !kFirst) {
      if (__builtin_expect(!step.has(Message::kNeedsMaskOrReport), true)) {
        weigh<kFirst>(scores, sums, maxima, units, step);
        return;
      }
    }
    to_scores(scores, sums, units, step);
    if (Units::kScoresAreLogits || __builtin_expect(step.has(Message::kNeedsMaskOrReport), false))
      complete(maxima, scores, units, step);
    weigh<kFirst>(scores, scores, maxima, units, step);
  }

  /// Issues the product of the weights with the values there, of those groups that a gate lets
  /// pass. Those are all, most often, and on that way nothing else is asked.
  __device__ __forceinline__ void multiply_values(const Ring& at) {
    bool all_count = !Shape::kHasGate;
    if constexpr (Shape::kVotesOnSteps) all_count = all_count_;
    if (__builtin_expect(all_count, true)) {
      await(smem_.control()->v_full, at);
      values_.issue_all(output_, smem_.values(at.slot()));
    } else if constexpr (Shape::kHasGate) {
      if constexpr (Shape::kVotesOnSteps) settle_votes();
      await(smem_.control()->v_full, at);
      values_.issue(output_, smem_.values(at.slot()), has_weights_);
    }
  }
  /// `decay`: of what the values were weighted with.
  __device__ __forceinline__ void complete_values(const Ring& at, const float (&decay)[2]) {
    wgmma_wait<0>();
    values_.complete(output_, decay);
    release_values(at);
  }

  /// Issues S = Q K of the step whose keys are at `keys`, and commits. One product whatever the
  /// groups, which all are waited for together: a narrow one reads as much of the queries.
  __device__ __forceinline__ void multiply_queries_keys(Sums& sums, u32 keys) const {
    using Query = typename Shape::QuerySlot::Tile;
    using Key = typename Shape::KeySlot::Tile;
    const auto q = Query::along_rows(uniform_over_warp(smem_.queries(queries_.slot(), warpgroup_)));
    const auto k = Key::along_rows(keys);
    auto& all = *reinterpret_cast<int(*)[Config::kStepKeys / 8][4]>(&sums[0][0]);
#pragma unroll
    for (int n = 0; n < Config::kHeadDim / 32; ++n) {
      wgmma_from_smem_s8(all, q.at(Query::along_step(n)), k.at(Key::along_step(n)), n != 0);
    }
    wgmma_commit();
  }

  /// Waits until the next step's keys are there, of whatever row. Behind the exponentials so far,
  /// and before the wait for a product that follows: ptxas moves either over anything but a branch
  /// that depends on them, as this wait's does by its address. Sums are not negative. That address
  /// has to be the same in all lanes, by a vote: else the compiler takes the warp for divergent
  /// from here on, and gathers it again and again (5 % of the time).
  __device__ __forceinline__ void await_next_keys() const {
    const bool is_negative = softmax_.sum[0] + softmax_.sum[1] < 0.0f;
    const Mbarrier full = Smem::barrier(smem_.control()->k_full[keys_.slot()]);
    Mbarrier{full.address + (__any_sync(kAllLanes, is_negative) ? 8u : 0u)}.wait(keys_.phase());
  }

  /// Waits for the product with the keys, which are no longer needed then.
  template <bool kFirst>
  __device__ __forceinline__ void take_sums(Sums& sums, Units& units) {
    wgmma_wait(kFirst ? 0 : 1);
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) fence_accumulator(sums[g]);
    release_keys();
    quantised_.complete(units);
  }

  /// Integer sums of a step to scores.
  __device__ __forceinline__ void to_scores(Scores& scores, Sums& sums, const Units& units,
                                            const Message& step) const {
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
#pragma unroll
      for (int n = 0; n < Shape::kGroupBlocks; ++n) {
        const int block = g * Shape::kGroupBlocks + n;
        float2 bias = {0.0f, 0.0f};
        if constexpr (Config::kHasColumnBias)
          bias = quantised_.column_bias(args_, row_, step, block);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          scores[g][n][i] = static_cast<float>(sums[g][n][i]);
          if constexpr (Units::kScoresAreLogits) {
            const float added = quantised_.row_bias(i / 2) + (i % 2 == 0 ? bias.x : bias.y);
            scores[g][n][i] = fmaf(scores[g][n][i], units.scale_of(block), added);
          }
        }
      }
    }
  }

  /// Scores, floating-point or integer, -> unpacked weights of all groups that the gate lets pass;
  /// where they outgrow the reference, all that is older follows. Half of the exponentials hide the
  /// step before's product; the others wait for it, as the additions of its result hide in them.
  template <bool kFirst, class Accumulator>
  __device__ __forceinline__ void weigh(
      Scores& weights, Accumulator (&scores)[Shape::kGroups][Shape::kGroupBlocks][4],
      const Maxima& maxima, const Units& units, const Message& step) {
    float step_max[2] = {-kInfinity, -kInfinity};
    bool takes_part[Shape::kGroups];
    ask_gate<kFirst>(takes_part, step_max, maxima, step);
    LaneVotes votes;
    const bool is_outgrown = find_votes(votes, maxima, step_max);
    float decay[2] = {1.0f, 1.0f};
    if (kFirst || __builtin_expect(is_outgrown, false)) {
      float row_max[2];
      if constexpr (Shape::kVotesOnSteps) {
        find_votes_in_turn(votes, row_max, maxima);
      } else {
        for (int r = 0; r < 2; ++r) row_max[r] = quad_max(step_max[r]);
      }
      raise_reference(softmax_, decay, row_max, to_log2_);
      values_.template follow<kFirst>(output_, decay);
    }
    float offset[2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
      offset[r] = softmax_.offset(r) - Values::kRangeLog2 - folded_bias(r) * to_log2_;
    constexpr int kBlocks = Config::kStepKeys / 8;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (Shape::kVotesOnSteps && block == kBlocks / 4)
        publish_votes<kFirst>(votes, step,
                              kIsInteger<Accumulator> || !step.has(Message::kNeedsMaskOrReport));
      if (block == kBlocks / 2) {
        if constexpr (kIntegersServe) await_next_keys();
        if (!kFirst) complete_values(keys_.before().before(), decay);  // keys are released
        if constexpr (kIntegersServe && !kFirst) {
#pragma unroll
          for (int r = 0; r < 2; ++r) offset[r] = behind(offset[r], output_[0][2 * r]);
        }
      }
      const int g = block / Shape::kGroupBlocks, n = block % Shape::kGroupBlocks;
      if (Config::kSkipsExp && !takes_part[g]) continue;
      exponentiate_block(weights[g][n], scores[g][n], units.unit_of(block) * to_log2_, offset);
      // The product no longer reads the weights before: the first half is packed under the second.
      if (!Config::kSkipsExp && block >= kBlocks / 2 && (block + 1) % Values::kStepBlocks == 0)
        values_.take(weights, (block - kBlocks / 2) / Values::kStepBlocks);
    }
#pragma unroll
    for (int n = Config::kSkipsExp ? 0 : Values::kSteps / 2; n < Values::kSteps; ++n)
      values_.take(weights, n);
    if constexpr (!kIsInteger<Accumulator> && !Shape::kHasGate) {
      if (__builtin_expect(step.has(Message::kNeedsMaskOrReport), false)) report_step(step);
    }
  }

  /// x, but only after y was computed: the compiler cannot move what follows ahead of y. Compares
  /// against one fixed NaN pattern; any would do.
  __device__ __forceinline__ static float behind(float x, float y) {
    return __float_as_uint(y) == 0xffffdeadu ? y : x;
  }

  /// Hook and mask, and maxima of what they make. Few steps ask for the mask: the row is read for
  /// them.
  __device__ __forceinline__ void complete(Maxima& maxima, Scores& scores, const Units& units,
                                           const Message& step) const {
    if (Config::kHasScore || step.has(Message::kNeedsMaskOrReport)) {
      const WorkTile row = this->reload_row();
#pragma unroll
      for (int g = 0; g < Shape::kGroups; ++g) {
        complete_scores<Config, Hooks>(args_, row, this->lane_rows(row), scores[g], g, step,
                                       this->tile_keys());
      }
    }
    find_maxima(maxima, scores, units);
  }

  /// Which groups count in the softmax, and the lane's maxima of those. A gate that is not asked
  /// late is asked about groups, each a tile, one after the other, as each changes the running
  /// maximum.
  template <bool kFirst>
  __device__ __forceinline__ void ask_gate(bool (&takes_part)[Shape::kGroups], float (&step_max)[2],
                                           const Maxima& maxima, const Message& step) {
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      takes_part[g] = true;
      if constexpr (Shape::kHasGate && !Shape::kVotesOnSteps) {
        gate_.publish(this->warp(), gate_.statistics(maxima[g], this->unit()));
        const bool is_first = this->template is_first<kFirst>(g, step.tiles[g]);
        const bool gated = settle(g, step.tiles[g], is_first, gate_.collect());
        takes_part[g] = !(Config::kSkipsExp && gated);
        if (!takes_part[g]) continue;
        gate_.raise({quad_max(maxima[g][0]), quad_max(maxima[g][1])});
      }
      step_max[0] = fmaxf(step_max[0], maxima[g][0]);
      step_max[1] = fmaxf(step_max[1], maxima[g][1]);
    }
  }

  /// The lane's vote on each group. True: a row of the warp has outgrown the reference, which is
  /// the running maximum itself where a gate needs it.
  __device__ __forceinline__ bool find_votes(LaneVotes& votes, const Maxima& maxima,
                                             const float (&step_max)[2]) const {
    if constexpr (Shape::kVotesOnSteps) {
      float largest_gap = -kInfinity;
#pragma unroll
      for (int g = 0; g < Shape::kGroups; ++g) {
        votes[g] = gate_.of_lane(maxima[g]);
        largest_gap = fmaxf(largest_gap, votes[g].gap);
      }
      if constexpr (Config::kGateReadsGap) return __any_sync(kAllLanes, largest_gap > 0.0f);
    }
    return outgrows(softmax_, step_max, to_log2_, Values::kSlackLog2);
  }

  /// The same where a group may raise the running maximum for those behind it; and the maxima of
  /// the rows.
  __device__ __forceinline__ void find_votes_in_turn(LaneVotes& votes, float (&row_max)[2],
                                                     const Maxima& maxima) {
    Maxima rows;
    row_max[0] = row_max[1] = -kInfinity;
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        rows[g][r] = quad_max(maxima[g][r]);
        row_max[r] = fmaxf(row_max[r], rows[g][r]);
      }
    }
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      votes[g] = gate_.of_lane(rows[g]);
      gate_.raise(rows[g]);
    }
  }

  /// `is_usual`: there are all tiles of the step, and no report is wanted.
  template <bool kFirst>
  __device__ __forceinline__ void publish_votes(const LaneVotes& votes, const Message& step,
                                                bool is_usual) {
    if constexpr (Shape::kVotesOnSteps) {
      const WorkTile row = this->reload_row();
      counts_ = there_ = 0;
#pragma unroll
      for (int g = 0; g < Shape::kGroups; ++g) {
        const TileRef tile = step.tiles[g];
        const bool exists = is_usual || tile.exists();
        const GateStatistics lane = {votes[g].tile_max * this->unit(), votes[g].gap * this->unit()};
        const bool skips =
            gate_skips<Config, Hooks>(args_, row, gate_row_, exists ? tile.index() : 0, lane);
        const bool is_first = this->template is_first<kFirst>(g, tile);
        const bool counts = __any_sync(kAllLanes, !skips || is_first);
        counts_ |= static_cast<u32>(counts && exists) << g;
        there_ |= static_cast<u32>(exists) << g;
        if (!is_usual) due_[g] = tile;
      }
      counts_ = uniform_over_warp(counts_);
      all_count_ = is_usual && counts_ == there_;
      votes_.publish(counts_);
    }
  }

  /// Which groups of the step whose product is due are multiplied with their values.
  __device__ __forceinline__ void settle_votes() {
    u32 counts = counts_;
    if (counts != there_) counts = votes_.collect();
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) has_weights_[g] = (counts >> g & 1) != 0;
    if (__builtin_expect(wants_report(args_.attend), false)) {
#pragma unroll
      for (int g = 0; g < Shape::kGroups; ++g)
        this->report(due_[g], due_[g].exists() && !has_weights_[g]);
    }
  }

  /// Notes whether group g is multiplied with its values; true: the gate is closed.
  __device__ __forceinline__ bool settle(int g, TileRef tile, bool is_first,
                                         const GateStatistics& statistics) {
    const bool skips = this->skips(this->reload_row(), tile, statistics);
    const bool gated = skips && tile.exists() && !is_first;
    this->note(g, tile, gated);
    return gated;
  }

  /// What scores leave out of their logits.
  __device__ __forceinline__ float folded_bias(int r) const {
    return Units::kScoresAreLogits ? 0.0f : quantised_.row_bias(r);
  }

  template <class Accumulator>
  __device__ __forceinline__ void find_maxima(
      Maxima& maxima, const Accumulator (&scores)[Shape::kGroups][Shape::kGroupBlocks][4],
      const Units& units) const {
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      find_logit_maxima(maxima[g], scores[g], units, g);
#pragma unroll
      for (int r = 0; r < 2; ++r) maxima[g][r] += folded_bias(r);
    }
  }

  template <class Accumulator>
  __device__ __forceinline__ void exponentiate_block(float (&weights)[4],
                                                     const Accumulator (&scores)[4], float unit,
                                                     const float (&offset)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      weights[i] = exp2_approx(fmaf(static_cast<float>(scores[i]), unit, -offset[i / 2]));
#pragma unroll
    for (int r = 0; r < 2; ++r) softmax_.sum[r] += weights[2 * r] + weights[2 * r + 1];
  }

  QuantisedScores<Config> quantised_;
  Values values_;
  // Of the step whose votes are to be settled:
  u32 counts_, there_;           ///< groups that count for this warp, and those that are tiles
  bool all_count_;               ///< and that is all there is to settle
  TileRef due_[Shape::kGroups];  ///< or else its tiles
};

}  // namespace lacuna
