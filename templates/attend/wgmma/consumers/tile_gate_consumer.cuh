// A consumer for gates of scope tile that do not read the gap and leave tiles out altogether. The
// decision about a tile needs the maxima of all warpgroups, so none can run ahead of the others.
// Until it is made, the tensor cores compute the next step's scores, which have registers of their
// own, and the products of the other warpgroup, which follows at a distance:
//
//   S_0 = Q K_0, its maxima published
//   for each step j:    (wait for the turn)
//                       S_{j+1} = Q K_{j+1} issued, if there is one
//                       (pass the turn on, when some of that is complete)
//                       the decision about the tiles of j, by the producer
//        one counts:    softmax of S_j, P = S_j; O decays
//                       S_{j+1} is complete, O += P V_j issued, of the tiles that count
//                       maxima of S_{j+1} published
//                       O is complete
//        none does:     S_{j+1} is complete, its maxima published
//
// Most tiles are left out, and then this chain of instructions takes the time, so it is as short as
// it can be. No product with V is in flight where the two branches meet: the other branch would
// have to wait for the tensor cores with an empty one. Keys are released before the maxima are
// computed, because the keys two steps ahead wait for that.
//
//   polled[s]        all warps have published what they say of the slot's tiles
//   decided[s]       the producer says which of them count
//   (attend/wgmma/producers/tile_gate_producer.cuh) v_full, v_empty  steps of which no tile counts
//   have no values, and no slot for them; the ring
//                    of keys, which all steps wait for, has more slots
#pragma once

#include "attend/wgmma/consumers/consumer_steps.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TileGateConsumer : ConsumerSteps<Config, Hooks, Args> {
  using Base = ConsumerSteps<Config, Hooks, Args>;
  using Base::args_, Base::smem_, Base::row_, Base::keys_, Base::queries_, Base::output_;
  using Base::softmax_, Base::to_log2_, Base::warpgroup_;
  using typename Base::Element;
  using typename Base::Message;
  using typename Base::Range;
  using typename Base::Ring;
  using typename Base::Scores;
  using typename Base::Shape;
  using typename Base::Smem;
  static constexpr int kTiles = Shape::kStepTiles;
  static constexpr int kPartKeys = Shape::kPartKeys;
  static constexpr int kParts = Config::kStepKeys / kPartKeys;
  static constexpr int kPartSteps = kPartKeys / 16;
  template <int kKeys>
  using ScoresOf = float[kKeys / 8][4];
  using Weights = u32[kPartSteps][4];
  static_assert(!Shape::kLooksAhead || kParts <= 2, "products with V are spelled out for two");

 public:
  __device__ __forceinline__ TileGateConsumer(const Args& args, const Smem& smem, int warpgroup)
      : Base(args, smem, warpgroup), thread_(thread_index()) {
    pin(thread_);  // not to be read from the special register again and again
  }

  __device__ __forceinline__ void run() {
    if (warpgroup_ == Config::kWarpgroups - 1) turn_barrier(0).arrive();
    this->for_each_row([this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    this->await(smem_.control()->q_full, queries_);
    last_row_ = row_.q1 - this->first_row(row_);
    least_bits_ = last_row_ >= kWarpRows - 1 ? kLeastBits : kNoMaximum;
    Scores scores[2];
    Ring at = take_keys();
    least_reference_ = -kInfinity;
    issue_scores(scores[0], at);
    pass_turn();
    await_scores(at);
    if (!take_scores(scores[0], step, at)) take_scores_with_max(scores[0], step, at);
    this->finish_store();
    while (!is_last(step)) {
      attend_step(scores[0], scores[1], step, at);
      if (is_last(step)) {
        copy(scores[0], scores[1]);  // for the end of a row to stand here once
        break;
      }
      attend_step(scores[1], scores[0], step, at);
    }
    attend_last(scores[0], at);
  }

  /// One iteration of the loop in the header's comment; `step` becomes the next.
  __device__ __forceinline__ void attend_step(Scores& now, Scores& next, Message& step, Ring& at) {
    const Message following = this->receive();
    const Ring following_at = take_keys();
    issue_scores(next, following_at);
    pass_turn();
    u32 chosen = decide(at);
    bool is_taken;
    if (__builtin_expect(chosen != 0, false)) {
      chosen = uniform_over_warp(chosen);
      Weights weights;
      weigh(weights, now, chosen, [&] { await_scores(following_at); });
      fence_accumulator(next[0]);
      issue_product(weights, chosen / 2);
      is_taken = take_scores(next, following, following_at);
      take_product();
      release_values();
    } else {
      await_scores(following_at);
      is_taken = take_scores(next, following, following_at);
    }
    if (__builtin_expect(!is_taken, false)) take_scores_with_max(next, following, following_at);
    step = following;
    at = following_at;
  }

  __device__ __forceinline__ static void copy(Scores& to, const Scores& from) {
#pragma unroll
    for (int n = 0; n < Shape::kGroupBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[0][n][i] = from[0][n][i];
    }
  }

  /// The last step: no other product is in flight, so its parts are computed one after the other.
  __device__ __forceinline__ void attend_last(Scores& now, const Ring& at) {
    const u32 chosen = uniform_over_warp(decide(at));
    if (chosen == 0) return;
    follow_maxima(now, chosen);
    if ((chosen & 1) != 0) attend_last_part<0>(now);
    if (kParts > 1 && (chosen & 2) != 0) attend_last_part<kParts - 1>(now);
    release_values();
  }
  template <int kPart>
  __device__ __forceinline__ void attend_last_part(Scores& scores) {
    Weights weights;
    weigh_part<kPart>(scores);
    pack_part<kPart>(weights, scores);
    this->await(smem_.control()->v_full, values_);
    issue_product(weights, kPart);
    take_product();
  }

  __device__ __forceinline__ int lane() const {
    return static_cast<int>(static_cast<u32>(thread_) % 32);
  }

  /// Scores -> the weights of the last part that counts, whose product with V is due; that of the
  /// other is complete then, and so is all that was issued before.
  template <class Wait>
  __device__ __forceinline__ void weigh(Weights& weights, Scores& scores, u32 chosen, Wait wait) {
    follow_maxima(scores, chosen);
    if (chosen == 2) {
      weigh_part<kParts - 1>(scores);
      pack_part<kParts - 1>(weights, scores);
      wait();
    } else {
      weigh_part<0>(scores);
      pack_part<0>(weights, scores);
      wait();
      if (chosen != 1) {
        this->await(smem_.control()->v_full, values_);
        issue_product(weights, 0);
        weigh_part<kParts - 1>(scores);
        take_product();
        pack_part<kParts - 1>(weights, scores);
      }
    }
    this->await(smem_.control()->v_full, values_);
  }

  __device__ __forceinline__ void take_product() {
    wgmma_wait<0>();
    fence_accumulator(output_);
  }
  __device__ __forceinline__ void release_values() {
    if (lane() == 0) Smem::barrier(smem_.control()->v_empty[values_.slot()]).arrive();
    values_.advance();
  }

  __device__ __forceinline__ static bool is_last(const Message& step) {
    return uniform_over_warp(step.flags & Message::kLastOfRow) != 0;
  }

  __device__ __forceinline__ Ring take_keys() {
    const Ring at = keys_;
    keys_.advance();
    return at;
  }

  __device__ __forceinline__ void issue_scores(Scores& scores, const Ring& at) {
    turn_barrier(warpgroup_).sync();
    wgmma_begin();
    this->multiply_queries_keys(scores, uniform_over_warp(smem_.keys(at.slot())));
  }
  /// The first part of the product, that of its first commit, is complete then.
  __device__ __forceinline__ void pass_turn() const {
    wgmma_wait<1>();
    turn_barrier(1 - warpgroup_).arrive();
  }

  /// The keys are no longer needed then.
  __device__ __forceinline__ void await_scores(const Ring& at) const {
    wgmma_wait<0>();
    if (lane() == 0) Smem::barrier(smem_.control()->k_empty[at.slot()]).arrive();
  }

  /// Those of the n-th kKeys keys.
  template <int kKeys>
  __device__ __forceinline__ static ScoresOf<kKeys>& scores_of(Scores& scores, int n) {
    return *reinterpret_cast<ScoresOf<kKeys>*>(&scores[0][n * kKeys / 8]);
  }
  template <int kKeys>
  __device__ __forceinline__ static const ScoresOf<kKeys>& scores_of(const Scores& scores, int n) {
    return *reinterpret_cast<const ScoresOf<kKeys>*>(&scores[0][n * kKeys / 8]);
  }

  /// Publishes the warp's maxima. False: not yet, that takes care. What is seldom done has its
  /// place behind both branches of a step, so that the instructions of all others lie close
  /// together.
  __device__ __forceinline__ bool take_scores(Scores& scores, const Message& step, const Ring& at) {
    fence_accumulator(scores[0]);
    if constexpr (Config::kHasScore) complete(scores, step);
    typename Shape::Vote vote;
    bool is_sure = Config::kHasScore || !step.has(Message::kNeedsMaskOrReport);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      vote.tile_max[t] =
          max_over_lanes(lane_maximum_bits(scores_of<Config::kTileK>(scores, t), least_bits_));
      is_sure = is_sure && is_maximum(vote.tile_max[t]);
    }
    publish(vote, at, is_sure);
    return is_sure;
  }

  /// The same of any scores.
  __device__ __forceinline__ void take_scores_with_max(Scores& scores, const Message& step,
                                                       const Ring& at) {
    if (!Config::kHasScore && step.has(Message::kNeedsMaskOrReport)) complete(scores, step);
    fence_accumulator(scores[0]);  // or the branch above makes copies, as floats and as bits
    typename Shape::Vote vote;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      float maxima[2];
      lane_maxima(maxima, scores_of<Config::kTileK>(scores, t));
      vote.tile_max[t] = max_over_lanes(ordered_bits(of_existing_rows(maxima)));
    }
    publish(vote, at, true);
  }

  __device__ __forceinline__ void publish(const typename Shape::Vote& vote, const Ring& at,
                                          bool is_sure) {
    warp_max_ = float_of_ordered(kTiles == 1 ? vote.tile_max[0]
                                             : max(vote.tile_max[0], vote.tile_max[kTiles - 1]));
    __syncwarp();
    if (lane() == 0 && is_sure) {
      smem_.control()->votes[at.slot()][thread_ / 32] = vote;
      Smem::barrier(smem_.control()->polled[at.slot()]).arrive();
    }
  }

  __device__ __forceinline__ void complete(Scores& scores, const Message& step) const {
    const WorkTile row = this->reload_row();
    complete_scores<Config, Hooks>(args_, row, this->lane_rows(row), scores[0], 0, step);
  }

  /// The larger of a lane's two rows, without those behind the last query.
  __device__ __forceinline__ float of_existing_rows(const float (&maxima)[2]) const {
    const int row = lane() / 4;
    return fmaxf(row <= last_row_ ? maxima[0] : -kInfinity,
                 row + 8 <= last_row_ ? maxima[1] : -kInfinity);
  }

  /// The parts that count, a bit each. The same in all lanes, which most steps, of which none
  /// counts, need not be told: that takes longer than to ask for 0.
  __device__ __forceinline__ u32 decide(const Ring& at) const {
    this->await(smem_.control()->decided, at);
    return smem_.control()->chosen[at.slot()];
  }

  /// The reference follows the maxima of the parts that count, if one may have outgrown it. The
  /// warp's largest score, which is known, mostly says that none has.
  __device__ __forceinline__ void follow_maxima(const Scores& scores, u32 chosen) {
    const float outgrown_log2 = fmaf(warp_max_, to_log2_, -least_reference_);
    if (__builtin_expect(outgrown_log2 <= Range::kSlackLog2, true)) return;
    float maxima[2] = {-kInfinity, -kInfinity};
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      if ((chosen >> p & 1) == 0) continue;
      float of_part[2];
      row_maxima(of_part, scores_of<kPartKeys>(scores, p));
      maxima[0] = fmaxf(maxima[0], of_part[0]);
      maxima[1] = fmaxf(maxima[1], of_part[1]);
    }
    float decay[2];
    raise_reference(softmax_, decay, maxima, to_log2_);
    follow_reference(output_, decay);
    least_reference_ = -max_over_lanes(fmaxf(-softmax_.reference[0], -softmax_.reference[1]));
  }

  /// Scores -> weights in place, of one part.
  template <int kPart>
  __device__ __forceinline__ void weigh_part(Scores& scores) {
    const float offset[2] = {softmax_.offset(0), softmax_.offset(1)};
    exponentiate(softmax_.sum, scores_of<kPartKeys>(scores, kPart), offset, to_log2_);
  }

  template <int kPart>
  __device__ __forceinline__ static void pack_part(Weights& weights, const Scores& scores) {
    const auto& part = scores_of<kPartKeys>(scores, kPart);
#pragma unroll
    for (int n = 0; n < kPartSteps; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto& block = part[n * 2 + i / 2];
        weights[n][i] = pack<Element>(block[i % 2 * 2], block[i % 2 * 2 + 1]);
        pin(weights[n][i]);
      }
    }
  }

  /// O += P V of one part.
  __device__ __forceinline__ void issue_product(const Weights& weights, u32 part) {
    using Step = typename Shape::StepTile;
    static_assert(kPartSteps == 4);
    const u32 rows = part * (kPartKeys * kPanelRowBytes);
    const auto v = Step::across_rows(uniform_over_warp(smem_.values(values_.slot()) + rows));
    const unsigned long long values_of[4] = {v.at(Step::across_step(0)), v.at(Step::across_step(1)),
                                             v.at(Step::across_step(2)),
                                             v.at(Step::across_step(3))};
    wgmma_begin();
    wgmma_four_from_registers<Element, Contiguous::kColumns>(output_, weights, values_of, true);
    wgmma_commit();
  }

  int thread_;             ///< of the block; the first warps are the consumers
  int least_bits_;         ///< no maximum if rows do not exist, which only careful votes know
  float warp_max_;         ///< the warp's largest score in the step to be decided about
  float least_reference_;  ///< of the warp\'s rows
  int last_row_;           ///< of the query tile, counted from this warp's first
  RingPosition<Config::kValueStages> values_;  ///< of the next step that has any
};

}  // namespace lacuna
