// Split work tiles: each is Config::kSplitKv items of work, and an item visits a share of the
// tiles. Items leave partial results in the workspace, which attend/combine.cuh merges.
//
//   number of an item = number of the work tile * kSplitKv + share
//
// Items therefore keep the order of the work tiles, such as longest first, and those of one work
// tile, which read the same queries, run together.
#pragma once

namespace lacuna {

/// Items of a row: Config::kSplitKv; 1 where a Config does not say.
template <class Config, class = const int>
struct SplitKv {
  static constexpr int kItems = 1;
  static constexpr bool kIsSplit = false;
};
template <class Config>
struct SplitKv<Config, decltype(Config::kSplitKv)> {
  static constexpr int kItems = Config::kSplitKv;
  static constexpr bool kIsSplit = true;
};

/// Number of the row that an item is of.
template <class Config>
__device__ __forceinline__ int row_of_item(int item) {
  return item / SplitKv<Config>::kItems;
}

/// Which of its row's shares an item has: 0 where rows are whole.
template <class Config>
__device__ __forceinline__ int share_of_item(int item) {
  return item % SplitKv<Config>::kItems;
}

/// `count` tiles of a walk, behind the first `begin` of them.
struct TileShare {
  int begin, count;
};

/// A share of `tiles`, as even as can be; where there are few of them, some have none.
template <class Config>
__device__ __forceinline__ TileShare share_of_tiles(int tiles, int share) {
  const int begin = tiles * share / SplitKv<Config>::kItems;
  return {begin, tiles * (share + 1) / SplitKv<Config>::kItems - begin};
}

}  // namespace lacuna
