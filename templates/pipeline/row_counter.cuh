// Work that persistent blocks share out by a counter: the first piece of a block has the block's
// own number, the others come from the counter. That balances pieces of unequal length.
#pragma once

#include "arch/atomic.cuh"
#include "arch/warp.cuh"

namespace lacuna {

/// The number of the next free piece, by one whole warp. The atomic takes long: ask for it early.
class RowCounter {
 public:
  __device__ __forceinline__ explicit RowCounter(u32* next_row) : next_row_(next_row) {}

  __device__ __forceinline__ void ask() {
    if (lane_index() == 0) taken_ = take_number(next_row_);
  }
  /// Asks and waits: of a warp that has no register for a number that is still to come.
  __device__ __forceinline__ int take_next() const {
    u32 taken = 0;
    if (lane_index() == 0) taken = take_number(next_row_);
    return static_cast<int>(__shfl_sync(kAllLanes, taken, 0) + gridDim.x);
  }
  /// What was asked for.
  __device__ __forceinline__ int take() const {
    return static_cast<int>(__shfl_sync(kAllLanes, taken_, 0) + gridDim.x);
  }

 private:
  u32* next_row_;
  u32 taken_ = 0;
};

/// Calls produce(number) for each piece that the block takes, of count() in all; by one whole warp.
template <class Count, class Produce>
__device__ __forceinline__ void for_each_piece(u32* next_row, const Count& count,
                                               const Produce& produce) {
  RowCounter counter(next_row);
  int number = block_index();
  while (number < count()) {
    counter.ask();
    produce(number);
    number = counter.take();
  }
}

}  // namespace lacuna
