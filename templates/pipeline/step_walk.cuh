// The steps along the keys of which a block sees anything, in ascending order. A warp asks about 32
// steps at a time, a lane each.
#pragma once

#include "arch/warp.cuh"

namespace lacuna {

class StepWalk {
 public:
  __device__ __forceinline__ explicit StepWalk(int steps) : steps_(steps) {}

  /// The next step for which `sees(step)` holds; the number of steps, or more, if there is none.
  template <class Sees>
  __device__ __forceinline__ int next(const Sees& sees) {
    while (left_ == 0) {
      first_ += 32;
      if (first_ >= steps_) return steps_;
      const int mine = first_ + lane_index();
      const bool is_seen = mine < steps_ && sees(mine);
      left_ = __ballot_sync(kAllLanes, is_seen);
    }
    const int step = first_ + __ffs(static_cast<int>(left_)) - 1;
    left_ &= left_ - 1;
    return step;
  }

 private:
  int steps_, first_ = -32;
  u32 left_ = 0;  ///< of the 32 from `first_` on, those that are still to come
};

}  // namespace lacuna
