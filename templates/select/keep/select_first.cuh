// The tiles of a row for a `keep` that reads only rank and place of a tile, and that keeps all
// ranks up to some number, the same for every tile: the first so many by descending p, ties by
// index. They are not sorted. A bisection over p finds where the last of them lies; it mostly ends
// within a dozen rounds, when every tile between the bounds is kept. Then `keep` may still exclude
// places.
//
// A team, a block or a warp, takes a row. A thread has the tiles number first + its index, of those
// that the team visits together.
#pragma once

#include "select/keep/first_tiles.cuh"

namespace lacuna {

/// Ranks of a row that `keep` takes: all below the number it returns.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ int count_kept_ranks(const Args& args, const KeepRow& row, int visible) {
  int kept = 0, end = visible;
#pragma unroll 1
  while (kept < end) {
    const int rank = (kept + end) / 2;
    if (keeps_rank<Config, Hooks>(args, row, rank, visible)) {
      kept = rank + 1;
    } else {
      end = rank;
    }
  }
  return __shfl_sync(kAllLanes, kept, 0);  // known to be the same in all lanes
}

/// What `keep` is asked of a tile that is one of the first, or none of them: the first rank, or one
/// that is not among the first. Where all are, there is no such tile.
__device__ __forceinline__ TileValue value_of_first(bool is_first, int visible) {
  TileValue value;
  value.rank = is_first ? 0 : visible;
  return value;
}

/// All threads of the team; `keys` of all visible tiles.
template <class Config, class Hooks, class Keys, class Team, class Args>
__device__ __forceinline__ void select_first(const Args& args, const KeepRow& row, const Keys& keys,
                                             int visible, const Team& team) {
  const int wanted = count_kept_ranks<Config, Hooks>(args, row, visible);
  const FirstTiles tiles = find_first_of_row<Config>(keys, wanted, visible, team);
  unsigned* const kept = kept_words<Config>(args, row);
  const int words = args.predict.keep_words, own = team.warp();
  constexpr bool kAsksPlaces = Config::kKeepsByPlace && Keys::kIsLoop;
  const auto parts = keep_parts<Hooks>(args, row);
  int ties = 0;
  keys.visit([&](int first, int key) {
    bool keep = key > tiles.low;
    if (tiles.has_ties) {
      const bool is_tie = keep && key <= tiles.high;
      const int number = team.count_before(is_tie, ties);
      if (is_tie) keep = number < tiles.missing;
    }
    if (kAsksPlaces && key != kUnseenKey) {
      const TileValue value = value_of_first(keep, visible);
      keep = keeps_tile<Config, Hooks>(args, row, parts, first + team.index(), value, visible);
    }
    const u32 bits = __ballot_sync(kAllLanes, keep);
    const int word = first / 32 + own;
    if (lane_index() == 0 && word < words) kept[word] = bits;
  });
#pragma unroll 1
  for (int word = ceil_div(keys.end(), 32) + team.index(); word < words; word += Team::kSize) {
    kept[word] = 0;
  }
  if constexpr (Config::kKeepsByPlace && !kAsksPlaces) {
    team.sync();
    select_each<Config, Hooks>(args, row, visible, team, [&](int j) {
      return value_of_first((kept[j / 32] >> j % 32 & 1u) != 0, visible);
    });
  }
}

/// By a block: p, written before it met, is lost, and may be written again afterwards.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_first(const Args& args, const KeepRow& row, float* p,
                                             OrderScratch<DecidingTeam<Config>::kSize / 32>& order,
                                             ReduceScratch& reduce) {
  const DecidingTeam<Config> team(reduce);
  const BlockKeys<team.kSize> keys(p, args.predict.keep_k_tiles, order);
  const int visible = team.sum(keys.template replace_p<Config, Hooks>(args, row));
  select_first<Config, Hooks>(args, row, keys, visible, team);
  team.sync();
}

}  // namespace lacuna
