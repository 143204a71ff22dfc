// A consumer for gates of scope tile that know no gap. The decision about a tile needs the maxima
// of all warpgroups, so they keep in step; what keeps the tensor cores busy meanwhile is the
// product of the next tile, whose scores have registers of their own:
//
//   S_0 = Q K_0, softmax, O = P V_0 issued: the first tile of a row always counts
//   S_1 = Q K_1 issued; both complete; the maximum of S_1 published
//   for each further step j:      S_{j+1} = Q K_{j+1} issued, if there is one
//                                 decide about tile j; if it counts: softmax of S_j
//                                 O += P_{j-1} V_{j-1} and S_{j+1} are complete
//                                 the maximum of S_{j+1} published; O decays
//                                 if tile j counts: P = S_j, O += P V_j issued
#pragma once

#include "kernel/wgmma_consumer.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class WgmmaAheadConsumer : protected WgmmaConsumer<Config, Hooks, Args> {
  using Base = WgmmaConsumer<Config, Hooks, Args>;
  using Base::args_, Base::smem_, Base::row_, Base::keys_, Base::queries_, Base::output_;
  using Base::has_weights_, Base::gate_;
  using typename Base::Decay;
  using typename Base::Message;
  using typename Base::Ring;
  using typename Base::Scores;
  using typename Base::Smem;

 public:
  __device__ __forceinline__ WgmmaAheadConsumer(const Args& args, const Smem& smem, int warpgroup)
      : Base(args, smem, warpgroup) {}

  __device__ __forceinline__ void run() {
    this->for_each_row([this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(const Message& first) {
    this->await(smem_.control()->q_full, queries_);
    this->load_queries();
    last_row_ = row_.q1 - this->first_row(row_);
    Scores scores[2];
    attend_first(scores[0], first);
    if (!is_last(first)) attend_others(scores[1], scores[0]);
    wgmma_wait<0>();
    wgmma_arrived(output_);
    release_values(keys_.before());
  }

  __device__ __forceinline__ void attend_first(Scores& scores, const Message& step) {
    issue_scores(scores);
    wgmma_wait<0>();
    wgmma_arrived(scores[0]);
    this->release_keys();
    this->complete(scores[0], 0, step);
    float maxima[2];
    row_maxima_wide(maxima, scores[0]);
    Decay decay;  // of nothing yet
    this->weigh_against(scores, 0, decay, maxima);
    has_weights_[0] = true;
    if (__builtin_expect(wants_report(args_.attend), false))
      write_visit(args_.attend, row_, step.tiles[0].index(), false);
    this->finish_store();
    issue_product(scores, keys_.before());
  }

  /// All steps after the first, their scores in turn in `now` and `next`.
  __device__ __forceinline__ void attend_others(Scores& now, Scores& next) {
    Message step = this->receive();
    issue_scores(now);
    wgmma_wait<0>();
    take_scores(now, step);
    while (true) {
      if (is_last(step)) return attend_last(now, step);
      attend_step(now, next, step);
      if (is_last(step)) return attend_last(next, step);
      attend_step(next, now, step);
    }
  }

  /// One turn of the loop in the header's comment; `step` becomes the next.
  __device__ __forceinline__ void attend_step(Scores& now, Scores& next, Message& step) {
    const auto values = keys_.before();
    const Message following = this->receive();
    issue_scores(next);
    Decay decay;
    if (decide(step)) this->weigh_against(now, 0, decay, maxima_);
    wgmma_wait<0>();
    take_scores(next, following);
    take_product(values.before(), decay);
    issue_product(now, values);
    step = following;
  }

  __device__ __forceinline__ void attend_last(Scores& now, const Message& step) {
    const auto values = keys_.before();
    Decay decay;
    if (decide(step)) this->weigh_against(now, 0, decay, maxima_);
    wgmma_wait<0>();
    take_product(values.before(), decay);
    issue_product(now, values);
  }

  __device__ __forceinline__ static bool is_last(const Message& step) {
    return uniform_over_warp(step.flags & Message::kLastOfRow) != 0;
  }

  __device__ __forceinline__ void issue_scores(Scores& scores) {
    wgmma_begin();
    this->multiply_queries_keys(scores, uniform_over_warp(smem_.keys(keys_.slot())));
  }

  __device__ __forceinline__ void take_scores(Scores& scores, const Message& step) {
    wgmma_arrived(scores[0]);
    this->release_keys();
    this->complete(scores[0], 0, step);
    row_maxima_wide(maxima_, scores[0]);
    gate_.publish(this->warp(), {warp_maximum(maxima_, last_row_) * this->unit()});
  }

  __device__ __forceinline__ void take_product(const Ring& values, const Decay& decay) {
    wgmma_arrived(output_);
    release_values(values);
    if (decay.applies) follow_reference(output_, decay.factor);
  }

  /// O += P V of a step, if it counts.
  __device__ __forceinline__ void issue_product(const Scores& weights, const Ring& values) {
    this->pack_weights(weights);
    if (has_weights_[0]) this->await(smem_.control()->v_full, values);
    this->multiply_values(uniform_over_warp(smem_.values(values.slot())));
  }

  /// Is the tile weighed? has_weights_: is its product with V taken?
  __device__ __forceinline__ bool decide(const Message& step) {
    const TileRef tile = step.tiles[0];
    const bool gated = this->skips(row_, tile, {gate_.collect().tile_max, 0.0f});
    has_weights_[0] = !(Config::kSkipsPv && gated);
    if (__builtin_expect(wants_report(args_.attend), false))
      write_visit(args_.attend, row_, tile.index(), gated);
    return !(Config::kSkipsExp && gated);
  }

  /// V may be on its way still, if its tile was left out.
  __device__ __forceinline__ void release_values(const Ring& at) const {
    this->await(smem_.control()->v_full, at);
    Base::release_values(at);
  }

  float maxima_[2];  ///< of the rows, in the tile to be decided about
  int last_row_;     ///< of the query tile, counted from this warp's first
};

}  // namespace lacuna
