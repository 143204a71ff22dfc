// What a block writes at the end of its work tile: O and lse, or partial results of its share.
#pragma once

#include "attend/epilogue.cuh"
#include "attend/mma/attend_block.cuh"
#include "attend/partial_results.cuh"
#include "attend/report.cuh"

namespace lacuna {

/// Works out again where the block is: kept, it would take registers from the loop.
template <class Block>
__device__ __forceinline__ void write_results(Block& at) {
  using Config = typename Block::Config;
  using Hooks = typename Block::Hooks;
  using Shape = typename Block::Shape;
  using Element = typename Block::Element;
  using Operands = typename Block::Operands;
  const WorkTile row =
      locate_work_tile<Config>(at.args.attend, Config::kGathers ? at.work_index : block_index());
  const int first_row = row.q0 + at.row_warp() * kWarpRows;
  if constexpr (!has_denominator<Config>()) note_plain_sum(at.softmax);
  const float sum[2] = {quad_sum(at.softmax.sum[0]), quad_sum(at.softmax.sum[1])};
  if constexpr (Shape::kHasE4m3Values) {
    scale_channels(at.output, Operands::value_scales(at.args, row));
  }
  const int share = share_of_item<Config>(block_index());
  if constexpr (SplitKv<Config>::kIsSplit) {
    write_partial_results<Shape::kHeadDimV>(at.args, row, share, first_row, at.first_column(),
                                            at.output, at.softmax, sum, at.to_log2);
  } else {
    using Staging = typename Shape::OutputTile;
    float denominators[2] = {sum[0], sum[1]};
    const LaneRows lane{first_row + lane_index() / 4, row.h};
    take_sinks<Config, Hooks>(denominators, at.args, row.b, lane, at.softmax, at.to_log2,
                              Block::kRangeLog2);
    write_output<Element, Staging>(
        at.args.attend.o, row.b, row.h, first_row, at.args.attend.n_q, at.first_column(),
        at.smem + warp_index() * kWarpRows * Staging::kRowBytes, at.output, denominators);
    if (Config::kWritesLse && at.args.attend.lse.data != nullptr && at.first_column() == 0) {
      write_lse<Config, Hooks>(at.args, at.args.attend.lse, row.b, lane, at.softmax, sum,
                               at.to_log2, Block::kRangeLog2);
    }
  }
  if (share == 0) close_report<Config, Hooks>(at.args, at.args.attend, row);
}

}  // namespace lacuna
