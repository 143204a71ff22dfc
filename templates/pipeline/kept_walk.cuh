// Key tiles of a work tile of a batch of sequences whose rows are those of several heads, where
// each head keeps tiles of its own: those that any of the heads keeps. A tile that only some of
// them keep is loaded once; the rows of the others hide it (hide_rows in
// attend/wgmma/scores/wgmma_scores.cuh).
//
// A work tile has all queries of its sequence, which are those of one tile of the predictor. So of
// each head there is one row of kept bits, the head's number. A bit is of kKeepK keys, one or
// several tiles of attend.
#pragma once

#include "pipeline/tile_walk.cuh"

namespace lacuna {

/// Of a head. `args`: of the work tile.
template <class Config, class Args>
__device__ __forceinline__ u32 kept_word_of(const Args& args, int h, int word) {
  return args.predict.kept[static_cast<long long>(h) * args.predict.keep_words + word];
}

/// Of all heads of a work tile together.
template <class Config, class Args>
__device__ __forceinline__ u32 kept_word_of_all(const Args& args, const WorkTile& row, int word) {
  if (word >= args.predict.keep_words) return 0;
  u32 bits = 0;
#pragma unroll 2
  for (int h = row.h; h < row.h + args.attend.heads_per_kv; ++h)
    bits |= kept_word_of<Config>(args, h, word);
  return bits;
}

/// Does a head keep tile j of attend? With kSharedHeads it keeps what any head of the KV head does.
template <class Config, class Args>
__device__ __forceinline__ bool keeps_tile(const Args& args, const WorkTile& row, int h, int j) {
  const int bit = j / (Config::kKeepK / Config::kTileK);
  u32 word;
  if constexpr (Config::kSharedHeads) {
    word = kept_word_of_all<Config>(args, row, bit / 32);
  } else {
    word = kept_word_of<Config>(args, h, bit / 32);
  }
  return (word >> bit % 32 & 1u) != 0;
}

/// By a whole warp: each lane has a word of a group of 32, and the next group is read when those
/// are used up. All tiles need the mask: some rows may hide them.
template <class Config, class Hooks, class Args>
class KeptWalk {
  static constexpr int kTilesOfBit = Config::kKeepK / Config::kTileK;
  static_assert(Config::kKeepK % Config::kTileK == 0, "a bit is whole tiles of attend");

 public:
  __device__ __forceinline__ KeptWalk(const Args& args, const WorkTile&, const GatheredKeys&)
      : word_(Config::kDescending ? ceil_div(args.predict.keep_words, 32) * 32 : -1) {}

  __device__ __forceinline__ TileRef next(const Args& args, const WorkTile& row) {
    while (left_ == 0) {
      if (!next_word(args, row)) return TileRef();
    }
    const int bit = Config::kDescending ? 31 - __clz(static_cast<int>(left_))
                                        : __ffs(static_cast<int>(left_)) - 1;
    const int tiles = tiles_of_bit(args, word_ * 32 + bit);
    const int own = Config::kDescending ? tiles - 1 - of_bit_ : of_bit_;
    if (++of_bit_ == tiles) left_ &= ~(1u << bit), of_bit_ = 0;
    const int j = (word_ * 32 + bit) * kTilesOfBit + own;
    return TileRef(static_cast<u32>(j) | TileRef::kNeedsMask);
  }

  /// Of the whole row.
  __device__ __forceinline__ int count(const Args& args, const WorkTile& row) const {
    int tiles = 0;
#pragma unroll 1
    for (int first = 0; first < args.predict.keep_words; first += 32)
      tiles += tiles_of(args, first + lane_index(),
                        kept_word_of_all<Config>(args, row, first + lane_index()));
    return warp_reduce(tiles, [](int a, int b) { return a + b; });
  }

  /// Leaves out the first tiles, fewer than there are.
  __device__ __forceinline__ void skip(const Args& args, const WorkTile& row, int tiles) {
    for (int here = 0; tiles >= here; here = tiles_of(args, word_, left_)) {
      tiles -= here;
      left_ = 0;
      if (!next_word(args, row)) return;
    }
    for (; tiles > 0; --tiles) next(args, row);
  }

 private:
  /// Tiles of attend that a bit stands for: of the last one fewer.
  __device__ __forceinline__ static int tiles_of_bit(const Args& args, int bit) {
    if constexpr (kTilesOfBit == 1) return 1;
    return smaller(args.attend.k_tiles - bit * kTilesOfBit, kTilesOfBit);
  }
  __device__ __forceinline__ static int tiles_of(const Args& args, int word, u32 bits) {
    const int last = args.predict.keep_k_tiles - 1;
    const bool has_last = last / 32 == word && (bits >> last % 32 & 1u) != 0;
    const int missing = has_last ? kTilesOfBit - tiles_of_bit(args, last) : 0;
    return __popc(bits) * kTilesOfBit - missing;
  }

  /// To the next word with a kept tile; false: there is none.
  __device__ __forceinline__ bool next_word(const Args& args, const WorkTile& row) {
    const int last = word_ & 31;
    u32 lanes = __ballot_sync(kAllLanes, own_ != 0);
    lanes &= Config::kDescending ? (1u << last) - 1 : 0xfffffffeu << last;
    while (lanes == 0) {
      const int first = ((word_ >> 5) + (Config::kDescending ? -1 : 1)) * 32;
      if (first < 0 || first >= args.predict.keep_words) return false;
      own_ = kept_word_of_all<Config>(args, row, first + lane_index());
      lanes = __ballot_sync(kAllLanes, own_ != 0);
      word_ = first;
    }
    const int lane = Config::kDescending ? 31 - __clz(static_cast<int>(lanes))
                                         : __ffs(static_cast<int>(lanes)) - 1;
    word_ = (word_ & ~31) + lane;
    left_ = __shfl_sync(kAllLanes, own_, lane);
    return true;
  }

  int word_;        ///< whose bits are in use; words of its group behind it are still to be used
  u32 own_ = 0;     ///< of this lane, of the group of word_
  u32 left_ = 0;    ///< bits of word_ still to be used
  int of_bit_ = 0;  ///< tiles of the first of these that were taken
};

}  // namespace lacuna
