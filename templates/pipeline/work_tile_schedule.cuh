// Which work tile a persistent block of the wgmma family takes next. The first has the block's own
// number; the others come from a counter that all blocks share, which balances work tiles of
// unequal length.
//
// Work tiles are numbered so that blocks that run at the same time share keys and values in L2, and
// so that the longest come first under a mask: a group of heads at a time, and of a group the last
// query tiles of all its heads before the ones before them. args.attend.row_order replaces this
// order. A block that takes several work tiles together (Config::kWorkTiles) counts them as one. If
// work tiles are split (pipeline/split_kv.cuh), items are numbered instead.
#pragma once

#include "pipeline/row_counter.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

struct AttendSchedule {
  u32* next_row;   ///< 0 at the launch; of sequences it is the first of ScheduleCounter
  int head_group;  ///< heads of a group, at least 1
  int reserved[13];
};
static_assert(sizeof(AttendSchedule) == 64, "the host writes this layout");

/// Of a batch of sequences: the next row, and the parts of the schedule
/// (pipeline/schedule_sequences.cuh) that blocks have taken, and have made.
enum ScheduleCounter { kNextRow, kTakenParts, kMadeParts };

/// How many work indices there are.
template <class Config>
__device__ __forceinline__ int scheduled_work_tiles(const AttendArgs& args) {
  return args.n_b * args.n_h * blocks_of_head<Config::kWorkTiles>(args) * SplitKv<Config>::kItems;
}

/// The work tile at a work index, or the first of those that a block takes together.
template <class Config>
__device__ __forceinline__ WorkTile scheduled_row(const AttendArgs& args,
                                                  const AttendSchedule& schedule, int work_index) {
  const int rows_of_head = blocks_of_head<Config::kWorkTiles>(args);
  const int place = row_of_item<Config>(work_index);
  if (args.row_order != nullptr) {
    const int number = args.row_order[place], head = number / rows_of_head;
    return work_tile<Config>(args, head, (number - head * rows_of_head) * Config::kWorkTiles);
  }
  const int heads = args.n_b * args.n_h;
  const int group_rows = schedule.head_group * rows_of_head;
  const int group = place / group_rows;
  const int rest = place - group * group_rows;
  const int first_head = group * schedule.head_group;
  const int group_heads = smaller(schedule.head_group, heads - first_head);
  const int height = rest / group_heads;
  return work_tile<Config>(args, first_head + rest - height * group_heads,
                           (rows_of_head - 1 - height) * Config::kWorkTiles);
}

/// produce(work tile, work index) for each that the block takes; by one whole warp.
template <class Config, class Args, class Produce>
__device__ __forceinline__ void for_each_work_tile(const Args& args, const Produce& produce) {
  for_each_piece(
      args.schedule.next_row, [&] { return scheduled_work_tiles<Config>(args.attend); },
      [&](int work_index) {
        produce(scheduled_row<Config>(args.attend, args.schedule, work_index), work_index);
      });
}

}  // namespace lacuna
