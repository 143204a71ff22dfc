// Which tiles count, for a gate that reads one statistic and stays open as that grows
// (GateByTileVotes, GateByStepVotes): a tile counts if what one lane has seen of it says so. So
// warps exchange only whether a tile counts, not what they found. Where the gate is about products
// with V alone, and scores are integers, they vote on all tiles of a step at once:
//
//   publish       the tiles that count as far as the warp knows, under the step's exponentials
//   collect       when their product is due, and only by a warp that is not sure of all of them:
//                 those that count for any warp in scope
//
// With 16-bit scores (kWarpsKnow) they do so as well in most steps, and on one tile after the other
// in those that need the mask (attend/wgmma/consumers/late_decision.cuh).
// Most warps are sure and do not wait. So a warp may publish while another has yet to read its
// earlier vote. It is ahead by no more steps than keys have slots, because all warps release these,
// and votes have more places than that.
#pragma once

#include "attend/wgmma/layout/wgmma_smem.cuh"
#include "base/pin.cuh"

namespace lacuna {

/// What a spec without such a gate asks of them.
template <class Config, bool kExist = WgmmaShape<Config>::kHasBitVotes>
class StepVotes {
 public:
  __device__ __forceinline__ StepVotes(WgmmaControl<Config>&, int) {}
};

template <class Config>
class StepVotes<Config, true> {
  using Shape = WgmmaShape<Config>;
  using Control = WgmmaControl<Config>;
  static_assert(Shape::kVoteSlots >=
                (Config::kStages + 1) * (Shape::kWarpsKnow ? Shape::kStepTiles : 1));

 public:
  __device__ __forceinline__ StepVotes(Control& control, int warpgroup)
      : control_(control), warpgroup_(warpgroup), voter_(thread_index() / 32) {
    pin(voter_);  // else it is computed again and again
  }

  /// Of the next step, a bit for each tile that counts. All lanes write the one word: a branch for
  /// one of them would keep the compiler from moving the work around it.
  __device__ __forceinline__ void publish(u32 counts) {
    control_.votes[position_.slot()][voter_] = counts;
    __syncwarp();
    if (lane_index() == 0) voted(position_, warpgroup_).arrive();
    position_.advance();
  }

  /// Of the step published last.
  __device__ __forceinline__ u32 collect() const {
    constexpr int kVoters = Shape::kVotesByTile ? Shape::kConsumerWarps : 4;
    const int first = Shape::kVotesByTile ? 0 : warpgroup_;
    const Position position = position_.before();
#pragma unroll
    for (int w = 0; w < kVoters / 4; ++w) voted(position, first + w).wait(position.phase());
    u32 counts = 0;
#pragma unroll
    for (int n = 0; n < kVoters; ++n) counts |= control_.votes[position.slot()][first * 4 + n];
    return uniform_over_warp(counts);
  }

 private:
  using Position = RingPosition<Shape::kVoteSlots>;

  __device__ __forceinline__ Mbarrier voted(const Position& position, int warpgroup) const {
    return WgmmaSmem<Config>::barrier(control_.voted[position.slot()][warpgroup]);
  }

  Control& control_;
  const int warpgroup_;
  int voter_;  ///< this warp, of the block's
  Position position_;
};

}  // namespace lacuna
