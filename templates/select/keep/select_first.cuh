// The tiles of a row for a `keep` that reads only rank and place of a tile, and that keeps all
// ranks up to some number, the same for every tile: the first so many by descending p, ties by
// index. They are not sorted. A bisection over p finds where the last of them lies; it mostly ends
// within a dozen rounds, when every tile between the bounds is kept. Then `keep` may still exclude
// places.
//
// A team, a block or a warp, takes a row. A thread has the tiles number first + its index, of those
// that the team visits together.
#pragma once

#include "arch/count.cuh"
#include "base/ordered_bits.cuh"
#include "select/keep/select_row.cuh"

namespace lacuna {

// Keys ascend with p. Least of all is a tile that is not visible. A NaN is the largest: no p is
// larger, so that it ranks first.
inline constexpr int kNanKey = 0x7fffffff;
inline constexpr int kUnseenKey = -kNanKey - 1;

/// Both zeros are one.
__device__ __forceinline__ int tile_key(float p, bool sees) {
  const int key = p == p ? ordered_bits(p + 0.0f) : kNanKey;
  return sees ? key : kUnseenKey;
}

/// Of up to 32 * kEach tiles, in a warp's registers.
template <int kEach>
class WarpKeys {
  static constexpr int kTogether = 4;  ///< tiles of a lane, without a look at where the row ends
  static_assert(kEach % kTogether == 0);

 public:
  /// Bit e of `seen`: is tile e * 32 + lane visible? None is from `end` on.
  __device__ __forceinline__ WarpKeys(const float* p, u32 seen, int end)
      : end_(ceil_div(end, 32 * kTogether) * 32 * kTogether) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const bool sees = (seen >> e & 1u) != 0;
      keys_[e] = tile_key(sees ? p[e * 32 + lane_index()] : 0.0f, sees);
    }
  }
  /// body(first of 32 tiles, key of this lane's).
  template <class Body>
  __device__ __forceinline__ void visit(Body body) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (e % kTogether == 0 && e * 32 >= end_) break;
      body(e * 32, keys_[e]);
    }
  }
  __device__ __forceinline__ int end() const { return end_; }

 private:
  int keys_[kEach];
  int end_;  ///< of the tiles that are visited
};

/// Of any number of tiles, in the place of p, by a block.
template <int kThreads>
class BlockKeys {
 public:
  __device__ __forceinline__ BlockKeys(float* p, int count) : keys_(p), count_(count) {}

  /// Of this thread's tiles; returns how many of them are visible.
  template <class Config, class Hooks, class Args>
  __device__ __forceinline__ int replace_p(const Args& args, const KeepRow& row) const {
    int visible = 0;
#pragma unroll 1
    for (int j = thread_index(); j < count_; j += kThreads) {
      const bool sees = sees_tile<Config, Hooks>(args, row, j);
      visible += sees;
      keys_[j] = __int_as_float(tile_key(keys_[j], sees));
    }
    return visible;
  }
  /// body(first of kThreads tiles, key of this thread's).
  template <class Body>
  __device__ __forceinline__ void visit(Body body) const {
#pragma unroll 1
    for (int first = 0; first < count_; first += kThreads) {
      const int j = first + thread_index();
      body(first, j < count_ ? __float_as_int(keys_[j]) : kUnseenKey);
    }
  }
  __device__ __forceinline__ int end() const { return count_; }

 private:
  float* keys_;
  int count_;
};

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

template <class Keys, class Team>
__device__ __forceinline__ int count_above(const Keys& keys, int bound, const Team& team) {
  int above = 0;
  keys.visit([&](int, int key) { count_if_above(above, key, bound); });
  return team.sum(above);
}

/// What tells the first tiles of a row: all with keys above `high`, and of the others above `low`
/// all, or if `has_ties` the first `missing` by index.
struct FirstTiles {
  int high, low, missing;
  bool has_ties;
};

/// `wanted` tiles, and all whose p is NaN: they take no other's place.
template <class Keys, class Team>
__device__ __forceinline__ FirstTiles find_first(const Keys& keys, int wanted, int visible,
                                                 const Team& team) {
  if (wanted == 0) return {kNanKey, kNanKey, 0, false};
  int largest = kUnseenKey, below_least = kNanKey;
  keys.visit([&](int, int key) {
    largest = larger(largest, key);
    // One less, and of a tile that is not visible the largest integer.
    below_least = smaller(below_least, static_cast<int>(static_cast<u32>(key) - 1u));
  });
  int high = team.max(largest), low = -team.max(-below_least);
  if (high == kNanKey) wanted = smaller(wanted + count_above(keys, kNanKey - 1, team), visible);
  int above_high = 0, above_low = visible;  // fewer than wanted; at least as many
#pragma unroll 1
  while (above_low > wanted && low + 1 < high) {
    const int middle = (low & high) + ((low ^ high) >> 1);
    const int above = count_above(keys, middle, team);
    if (above < wanted) {
      high = middle, above_high = above;
    } else {
      low = middle, above_low = above;
    }
  }
  return {high, low, wanted - above_high, above_low > wanted};
}

/// All threads of the team; `keys` of all visible tiles.
template <class Config, class Hooks, class Keys, class Team, class Args>
__device__ __forceinline__ void select_first(const Args& args, const KeepRow& row, const Keys& keys,
                                             int visible, const Team& team) {
  const int wanted = count_kept_ranks<Config, Hooks>(args, row, visible);
  const FirstTiles tiles = find_first(keys, wanted, visible, team);
  unsigned* const kept = kept_words<Config>(args, row);
  const int words = args.predict.keep_words, own = team.warp();
  int ties = 0;
  keys.visit([&](int first, int key) {
    bool keep = key > tiles.low;
    if (tiles.has_ties) {
      const bool is_tie = keep && key <= tiles.high;
      const int number = team.count_before(is_tie, ties);
      if (is_tie) keep = number < tiles.missing;
    }
    const u32 bits = __ballot_sync(kAllLanes, keep);
    const int word = first / 32 + own;
    if (lane_index() == 0 && word < words) kept[word] = bits;
  });
#pragma unroll 1
  for (int word = ceil_div(keys.end(), 32) + team.index(); word < words; word += Team::kSize) {
    kept[word] = 0;
  }
  if constexpr (Config::kKeepsByPlace) {
    team.sync();
    // The first rank, or one that is not among the first: where all are, there is no such tile.
    select_each<Config, Hooks>(args, row, visible, team, [&](int j) {
      TileValue value;
      value.rank = (kept[j / 32] >> j % 32 & 1u) != 0 ? 0 : visible;
      return value;
    });
  }
}

/// By a block: p, written before it met, is lost, and may be written again afterwards.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_first(const Args& args, const KeepRow& row, float* p,
                                             ReduceScratch& scratch) {
  const DecidingTeam<Config> team(scratch);
  const BlockKeys<team.kSize> keys(p, args.predict.keep_k_tiles);
  const int visible = team.sum(keys.template replace_p<Config, Hooks>(args, row));
  select_first<Config, Hooks>(args, row, keys, visible, team);
  team.sync();
}

}  // namespace lacuna
