// `select` as a kernel of its own: static patterns, which read nothing but places, and the result
// of an estimate from the last rows, which is the same for every query tile of a head.
#pragma once

#include "select/keep/select_first.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

/// predict.scores of an estimate from the last rows, by head: p, score and, if rank or mass is
/// used, the order of the tiles by p and memory to find it.
template <class Config>
inline constexpr int kLastRowsPlanes = row_planes(Config::kOrdersTiles);

template <class Config, class Args>
__device__ __forceinline__ float* last_rows_plane(const Args& args, int b, int h, int plane) {
  const long long number = query_head(args, b, h) * kLastRowsPlanes<Config> + plane;
  return args.predict.scores + number * args.predict.keep_k_tiles;
}

/// The row's first visible tiles of the order, as many as `keep` takes by their rank. It asks for
/// nothing else but places, which decide about the others: those are not put in order again, nor
/// visited along it.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_first_in_order(const Args& args, const KeepRow& row,
                                                      const RowValues& values, unsigned* words,
                                                      int most_words, ReduceScratch& reduce) {
  const BlockTeam<Config::kThreads> team(reduce);
  const int visible = count_visible<Config, Hooks>(args, row, team);
  const int wanted = count_kept_ranks<Config, Hooks>(args, row, visible);
  const int row_words = args.predict.keep_words;
  unsigned* const bits = row_words <= most_words ? words : kept_words<Config>(args, row);
#pragma unroll 1
  for (int word = team.index(); word < row_words; word += team.kSize) bits[word] = 0;
  team.sync();
  int before = 0;  // visible tiles
#pragma unroll 1
  for (int round = 0; round < values.ordered && before < wanted; round += team.kSize) {
    const int place = round + team.index();
    const int j = place < values.ordered ? values.order[place] : 0;
    const bool sees = place < values.ordered && sees_tile<Config, Hooks>(args, row, j);
    const int rank = team.count_before(sees, before);
    if (sees && rank < wanted) atomicOr(&bits[j / 32], 1u << j % 32);
  }
  team.sync();
  select_each<Config, Hooks>(args, row, visible, team, [&](int j) {
    TileValue value;
    const bool is_first = (bits[j / 32] >> j % 32 & 1u) != 0 || values.p[j] != values.p[j];
    value.rank = is_first ? 0 : visible;  // a NaN is the last of the order, but none is larger
    return value;
  });
}

/// Block = work tile of predict.kept.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_rows(const Args& args) {
  static_assert(Config::kHasEstimate || !Config::kOrdersTiles, "tiles have a rank by an estimate");
  static_assert(sizeof(SelectScratch) <= Config::kSmemBytes);
  extern __shared__ __align__(1024) unsigned char block_smem[];
  if (is_beyond<Config>(block_index(), args.attend.n_h * args.predict.keep_q_tiles)) return;
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
  auto& scratch = *reinterpret_cast<SelectScratch*>(block_smem);
  if constexpr (Config::kKeepsFirstInOrder) {
    constexpr int kMostWords = (Config::kSmemBytes - static_cast<int>(sizeof(SelectScratch))) / 4;
    auto* const words = reinterpret_cast<unsigned*>(block_smem + sizeof(SelectScratch));
    select_first_in_order<Config, Hooks>(args, row, values, words, kMostWords, scratch.reduce);
  } else {
    select_row<Config, Hooks>(args, row, values, scratch);
  }
}

}  // namespace lacuna
