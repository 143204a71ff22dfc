// `select` as a kernel of its own: static patterns, which read nothing but places, and the result
// of an estimate from the last rows, which is the same for every query tile of a head.
#pragma once

#include "select/keep/select_first.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

/// predict.scores of an estimate from the last rows, by head: p, score and, if rank or mass is
/// used, the order of the tiles by p and what select/tokens/order_last_rows.cuh finds it with.
template <class Config>
inline constexpr int kLastRowsPlanes = last_row_planes(Config::kOrdersTiles);

template <class Config, class Args>
__device__ __forceinline__ float* last_rows_plane(const Args& args, int b, int h, int plane) {
  const long long number = query_head(args, b, h) * kLastRowsPlanes<Config> + plane;
  return args.predict.scores + number * args.predict.keep_k_tiles;
}

struct VisibleTiles {
  int count = 0;
  int end = 0;  ///< of the words that have any
};

/// A word at a time where the mask says enough: rows of single keys are long.
template <class Config, class Hooks, class Team, class Args>
__device__ __forceinline__ VisibleTiles count_visible_words(const Args& args, const KeepRow& row,
                                                            const Team& team) {
  const int words = args.predict.keep_words, tiles = args.predict.keep_k_tiles;
  int visible = 0, end = 0;
#pragma unroll 1
  for (int first = team.warp() * 32; first < words; first += Team::kSize) {
    const int word = first + lane_index();
    const WordView view =
        word < words ? view_of_word<Config, Hooks>(args, row, word) : WordView::kNone;
    if (view != WordView::kNone) end = word + 1;
    if (view == WordView::kAll) visible += smaller(32, tiles - word * 32);
    u32 some = __ballot_sync(kAllLanes, view == WordView::kSome);
#pragma unroll 1
    for (; some != 0; some &= some - 1) {
      const int j = (first + __ffs(static_cast<int>(some)) - 1) * 32 + lane_index();
      visible += j < tiles && sees_tile<Config, Hooks>(args, row, j);
    }
  }
  return {team.sum(visible), team.max(end)};
}

/// `bits` of the first tiles -> what `keep` says of all.
template <class Config, class Hooks, class Team, class Args>
__device__ __forceinline__ void select_others(const Args& args, const KeepRow& row,
                                              const VisibleTiles& visible, const unsigned* bits,
                                              const Team& team) {
  unsigned* const kept = kept_words<Config>(args, row);
#pragma unroll 1
  for (int word = visible.end + team.index(); word < args.predict.keep_words; word += Team::kSize)
    kept[word] = 0;
  const auto parts = keep_parts<Hooks>(args, row);
#pragma unroll 1
  for (int word = team.warp(); word < visible.end; word += Team::kSize / 32) {
    const int j = word * 32 + lane_index();
    bool keep = j < args.predict.keep_k_tiles && sees_tile<Config, Hooks>(args, row, j);
    if (keep) {
      TileValue value;
      value.rank = (bits[word] >> lane_index() & 1u) != 0 ? 0 : visible.count;
      keep = keeps_tile<Config, Hooks>(args, row, parts, j, value, visible.count);
    }
    const u32 word_bits = __ballot_sync(kAllLanes, keep);
    if (lane_index() == 0) kept[word] = word_bits;
  }
}

/// The row's first visible tiles of the order, as many as `keep` takes by their rank. It asks for
/// nothing else but places, which decide about the others: those are not put in order again, nor
/// visited along it.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_first_in_order(const Args& args, const KeepRow& row,
                                                      const RowValues& values, unsigned* words,
                                                      int most_words, ReduceScratch& reduce) {
  const BlockTeam<Config::kThreads> team(reduce);
  const VisibleTiles visible = count_visible_words<Config, Hooks>(args, row, team);
  const int wanted = count_kept_ranks<Config, Hooks>(args, row, visible.count);
  const bool takes_all = wanted == visible.count;
  const int row_words = args.predict.keep_words;
  unsigned* const bits = row_words <= most_words ? words : kept_words<Config>(args, row);
#pragma unroll 1
  for (int word = team.index(); word < row_words; word += team.kSize)
    bits[word] = takes_all ? kAllLanes : 0u;
  team.sync();
  constexpr int kEach = 4;  // neighbours in the order that a thread looks at: a round meets twice
  int before = 0;           // visible tiles
#pragma unroll 1
  for (int round = 0; round < values.ordered && before < wanted && !takes_all;
       round += team.kSize * kEach) {
    int tiles[kEach];
    bool sees[kEach];
    int seen = 0;
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int place = round + team.index() * kEach + n;
      tiles[n] = place < values.ordered ? values.order[place] : 0;
      sees[n] = place < values.ordered && sees_tile<Config, Hooks>(args, row, tiles[n]);
      seen += sees[n];
    }
    int rank = team.sum_before(seen, before);
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      if (sees[n] && rank < wanted) atomicOr(&bits[tiles[n] / 32], 1u << tiles[n] % 32);
      rank += sees[n];
    }
  }
  // A NaN is behind all others in the order, but none is larger: it is one of the first.
#pragma unroll 1
  for (int place = values.ordered - 1 - team.index(); place >= 0; place -= team.kSize) {
    const int j = values.order[place];
    if (values.p[j] == values.p[j]) break;
    atomicOr(&bits[j / 32], 1u << j % 32);
  }
  team.sync();
  select_others<Config, Hooks>(args, row, visible, bits, team);
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
