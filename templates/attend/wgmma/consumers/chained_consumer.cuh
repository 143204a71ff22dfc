// A consumer warpgroup of the wgmma family whose rows follow one another without a pause of the
// tensor cores: 64 query rows of each work tile. Steps are those of consumer.cuh; the first scores
// of a row are issued behind the last product with V of the row before, before its O is stored:
//
//   S = Q K of the block's first row
//   for each row:   softmax of S, then its further steps
//                   O += P V, S = Q K of the next row     issued
//                   O is complete: O, LSE and reports are written
//
// The queries of the next row are in a buffer of their own, since O leaves through that of its row.
#pragma once

#include "attend/wgmma/consumers/consumer_steps.cuh"
#include "attend/wgmma/consumers/work_tiles.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ChainedConsumer {
  using State = ConsumerState<Config, Hooks, Args>;
  using Shape = WgmmaShape<Config>;
  using Message = typename Shape::Message;
  static_assert(Shape::kKeepsQueries && Config::kQueryBuffers > 1 && !Shape::kHasGate &&
                    !Shape::kOwnRows && !Config::kGathers && !has_sequence_tiles<Config>() &&
                    !SplitKv<Config>::kIsSplit,
                "rows of one list or mask, found in time, with queries in registers");

 public:
  /// `warpgroup`: 0 or 1.
  __device__ __forceinline__ ChainedConsumer(const Args& args, const WgmmaSmem<Config>& smem,
                                             int warpgroup)
      : at_(args, smem, warpgroup) {}

  __device__ __forceinline__ void run() {
    StepScores<Config> scores;
    Decay decay;
    Message step = at_.receive();
    begin_scores(scores, step);
    while (!step.has(Message::kEnd)) {
      at_.row = at_.reload_row();
      begin_row(at_);
      Message next;
      if (takes_part(at_, step)) {
        attend_steps(at_, fragments_, scores, decay, step);
        const auto values = multiply_last_values(at_, fragments_);
        at_.queries.advance();
        next = at_.receive();
        begin_scores(scores, next);
        wgmma_wait<Shape::kGroups>();
        fence_accumulator(at_.output);
        at_.release_values(values);
        write_output<true>(at_);
      } else {
        wgmma_wait<0>();
        pass_over(at_);
        next = at_.receive();
        begin_scores(scores, next);
        // Reconverge; otherwise the compiler assumes divergence and adds WARPSYNCs.
        __syncwarp();
      }
      write_rest(at_);
      at_.rows.advance();
      step = next;
    }
    wgmma_wait<0>();
    at_.finish_store();
  }

 private:
  /// Issues S of the step just received. A step without keys, and the end, have products that
  /// nobody reads, with the queries before, which nothing overwrites yet: a branch around the
  /// products would part them from what waits for them.
  __device__ __forceinline__ void begin_scores(StepScores<Config>& scores, const Message& step) {
    const bool has_queries = !step.has(Message::kEnd) && step.tiles[0].exists();
    if (has_queries) at_.await(at_.smem.control()->q_full, at_.queries);
    load_queries(at_, fragments_, has_queries ? at_.queries : at_.queries.before());
    wgmma_begin();
    multiply_queries_keys(at_, fragments_, scores, uniform_over_warp(keys_address(at_)));
  }

  State at_;
  StepFragments<Config> fragments_;
};

}  // namespace lacuna
