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
// Usually no tile of a step counts, so this chain of instructions is kept short. Where the branches
// join no product with V is under way, since the branch without would have to issue an empty one.
// Keys are released before the maxima are computed: loads two steps ahead wait for their slot.
//
//   polled[s]        all warps have published what they say of the slot's tiles
//   decided[s]       the producer (producers/tile_gate_producer.cuh) says which of them count
//   v_full, v_empty  steps of which no tile counts have no values, and no slot for them; the ring
//                    of keys, which all steps wait for, has more slots
#pragma once

#include "attend/wgmma/consumers/tile_gate_parts.cuh"
#include "attend/wgmma/consumers/tile_gate_votes.cuh"
#include "attend/wgmma/consumers/work_tiles.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TileGateConsumer {
  using State = ConsumerState<Config, Hooks, Args>;
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Ring = typename State::Ring;
  using Scores = StepScores<Config>;
  using Parts = StepParts<Config>;

 public:
  __device__ __forceinline__ TileGateConsumer(const Args& args, const Smem& smem, int warpgroup)
      : at_(args, smem, warpgroup) {
    own_.thread = thread_index();
    pin(own_.thread);  // else it is read from the special register again and again
  }

  __device__ __forceinline__ void run() {
    if (at_.warpgroup == Config::kWarpgroups - 1) turn_barrier(0).arrive();
    for_each_row(at_, [this](const Message& first) { attend_row(first); });
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    at_.await(at_.smem.control()->q_full, at_.queries);
    own_.last_row = at_.row.q1 - first_row_of_warp<Config>(at_.row);
    own_.least_bits = own_.last_row >= kWarpRows - 1 ? kLeastBits : kNoMaximum;
    Scores scores[2];
    Ring slot = take_keys();
    own_.least_lagging_max = -kInfinity;
    issue_scores(scores[0], slot);
    pass_turn();
    await_scores(slot);
    if (!take_scores(at_, own_, scores[0], step, slot))
      take_scores_with_max(at_, own_, scores[0], step, slot);
    at_.finish_store();
    while (!is_last(step)) {
      attend_step(scores[0], scores[1], step, slot);
      if (is_last(step)) {
        // So that the code for the end of a row stands here once.
        copy_scores(scores[0], scores[1]);
        break;
      }
      attend_step(scores[1], scores[0], step, slot);
    }
    attend_last(scores[0], slot);
  }

  /// One iteration of the loop in the header's comment; `step` becomes the next.
  __device__ __forceinline__ void attend_step(Scores& now, Scores& next, Message& step,
                                              Ring& slot) {
    const Message following = at_.receive();
    const Ring following_slot = take_keys();
    issue_scores(next, following_slot);
    pass_turn();
    u32 chosen = decision(at_, slot);
    bool is_taken;
    if (__builtin_expect(chosen != 0, false)) {
      chosen = uniform_over_warp(chosen);
      typename Parts::Weights weights;
      weigh_chosen(at_, own_, weights, now, chosen, [&] { await_scores(following_slot); });
      fence_accumulator(next[0]);
      multiply_part(at_, own_, weights, chosen / 2);
      is_taken = take_scores(at_, own_, next, following, following_slot);
      take_product(at_);
      release_part_values(at_, own_);
    } else {
      await_scores(following_slot);
      is_taken = take_scores(at_, own_, next, following, following_slot);
    }
    if (__builtin_expect(!is_taken, false))
      take_scores_with_max(at_, own_, next, following, following_slot);
    step = following;
    slot = following_slot;
  }

  /// The last step: no other product is in flight, so its parts are computed one after the other.
  __device__ __forceinline__ void attend_last(Scores& now, const Ring& slot) {
    const u32 chosen = uniform_over_warp(decision(at_, slot));
    if (chosen == 0) return;
    follow_maxima(at_, own_, now, chosen);
    if ((chosen & 1) != 0) attend_last_part<0>(at_, own_, now);
    if (Parts::kCount > 1 && (chosen & 2) != 0) attend_last_part<Parts::kCount - 1>(at_, own_, now);
    release_part_values(at_, own_);
  }

  __device__ __forceinline__ static bool is_last(const Message& step) {
    return uniform_over_warp(step.flags & Message::kLastOfRow) != 0;
  }

  __device__ __forceinline__ Ring take_keys() {
    const Ring slot = at_.keys;
    at_.keys.advance();
    return slot;
  }

  __device__ __forceinline__ void issue_scores(Scores& scores, const Ring& slot) {
    turn_barrier(at_.warpgroup).sync();
    wgmma_begin();
    multiply_queries_keys(at_, own_, scores, uniform_over_warp(at_.smem.keys(slot.slot())));
  }
  /// The first part of the product, that of its first commit, is complete then.
  __device__ __forceinline__ void pass_turn() const {
    wgmma_wait<1>();
    turn_barrier(1 - at_.warpgroup).arrive();
  }

  /// The keys are no longer needed then.
  __device__ __forceinline__ void await_scores(const Ring& slot) const {
    wgmma_wait<0>();
    if (own_.lane() == 0) Smem::barrier(at_.smem.control()->k_empty[slot.slot()]).arrive();
  }

  State at_;
  TileGateState<Config> own_;
};

}  // namespace lacuna
