// `select` as a stage of its own: static patterns, which read nothing but places, and the result of
// an estimate from the last rows, which is the same for every query tile of a head.
#pragma once

#include "predict/select_row.cuh"

namespace lacuna {

/// predict.scores of an estimate from the last rows, by head: p, score and, if rank or mass is
/// used, the order of the tiles by p and memory to find it.
template <class Config>
inline constexpr int kLastRowsPlanes = Config::kOrdersTiles ? 4 : 2;

template <class Config, class Args>
__device__ __forceinline__ float* last_rows_plane(const Args& args, int b, int h, int plane) {
  const long long number = query_head(args, b, h) * kLastRowsPlanes<Config> + plane;
  return args.predict.scores + number * args.predict.keep_k_tiles;
}

/// Block = row of tiles of predict.kept.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_rows(const Args& args) {
  static_assert(Config::kHasEstimate || !Config::kOrdersTiles, "tiles have a rank by an estimate");
  static_assert(sizeof(SelectScratch) <= Config::kSmemBytes);
  extern __shared__ __align__(128) unsigned char block_smem[];
  const KeepRow row = locate_keep_row<Config>(args, block_index());
  RowValues values;
  if constexpr (Config::kHasEstimate) {
    values.p = last_rows_plane<Config>(args, row.b, row.h, 0);
    values.score = last_rows_plane<Config>(args, row.b, row.h, 1);
    if constexpr (Config::kOrdersTiles) {
      values.order = reinterpret_cast<const int*>(last_rows_plane<Config>(args, row.b, row.h, 2));
      values.ordered = args.predict.keep_k_tiles;
    }
  }
  select_row<Config, Hooks>(args, row, values, *reinterpret_cast<SelectScratch*>(block_smem));
}

}  // namespace lacuna
