// select/keep/select_first.cuh, held_row.cuh and row_shares.cuh by themselves: one row, whose p and
// mask are given tile by tile.
#pragma once

#include "tests/device/emulation/block.hpp"

namespace single {

/// What follows AttendArgs and PredictArgs. `keep` is rank < top, or also of each step-th tile.
struct FirstRow {
  float* p;
  const bool* sees;
  int top, step;  ///< 0: of none
};

inline constexpr int kMostFirstTiles = 512;  ///< of a warp
inline constexpr int kFirstRowBytes =
    8320;  ///< of shared memory: what a block reduces and counts in

/// `by_place`: `keep` is asked about places too, or else `step` is 0. A block is that warp.
emulation::Kernel first_by_warp_kernel(bool by_place);
emulation::Kernel first_by_block_kernel(bool by_place);

struct FirstKernel {
  emulation::Kernel kernel;
  int smem_bytes;
};
/// Of a row of up to 8192 tiles, by a block; p stays.
FirstKernel first_held_kernel(bool by_place);
/// Of shares of a row, each by the block with its number: row_bins are clear and have one range.
FirstKernel count_share_kernel();
FirstKernel decide_share_kernel(bool by_place);

}  // namespace single
