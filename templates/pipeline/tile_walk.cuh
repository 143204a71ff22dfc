// Which key tiles a block visits, in which order, and which of them need the mask.
//
// Every warp walks by itself and finds the same tiles, without shared memory or a barrier. The plan
// names one of these walks as Config::Walk (others: pipeline/two_list_walk.cuh, sequence_tile.cuh):
//
//   MaskWalk     all tiles that the mask leaves
//   ListWalk     the tiles of the work tile's list
//   GatherWalk   tiles of a list of gathered keys
//   ShareWalk    an item's share of one of these (pipeline/split_kv.cuh)
//
// For MaskWalk a warp classifies 32 tiles at a time, a lane each, by the bounds of the mask over a
// tile (Hooks::tile_full, tile_visible), and takes them from the bits of its votes; or, where a
// kernel has asked their pairs, it reads these bits (pipeline/tile_classes.cuh). If the mask
// consists of ranges, it first asks about 32 such groups of 32 tiles at a time, so that tiles far
// from a window cost nothing.
#pragma once

#include "arch/warp.cuh"
#include "args/attend_args.cuh"
#include "base/mask_pair.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/split_kv.cuh"
#include "pipeline/tile_classes.cuh"

namespace lacuna {

/// One work tile: a query tile of one head. Bounds are inclusive and clamped to the last token.
struct WorkTile {
  int i, h, b;
  int q0, q1;
  int q_tiles, n_h;

  /// In arrays [n_b, n_h, q_tiles].
  __device__ __forceinline__ long long index() const { return head() * q_tiles + i; }
  /// In arrays [n_b, n_h].
  __device__ __forceinline__ long long head() const { return static_cast<long long>(b) * n_h + h; }
};

/// Number of a row in the arrays of reports, by whose arguments they lie: of work tiles of
/// sequences those of the batch, which are laid out for the longest.
template <class Config>
__device__ __forceinline__ long long row_of_reports(const AttendArgs& args, const WorkTile& row) {
  if constexpr (!has_sequence_tiles<Config>()) return row.index();
  return row.head() * args.q_tiles + row.i;
}

/// Of a head, where a block takes kWorkTiles of its rows together; the last may have less.
template <int kWorkTiles>
__device__ __forceinline__ int blocks_of_head(const AttendArgs& args) {
  return ceil_div(args.q_tiles, kWorkTiles);
}

/// Query tile i of a head, counted through the batch.
template <class Config>
__device__ __forceinline__ WorkTile work_tile(const AttendArgs& args, int head, int i) {
  WorkTile row;
  row.i = i;
  row.b = head / args.n_h;
  row.h = head - row.b * args.n_h;
  row.q0 = row.i * Config::kTileQ;
  row.q1 = smaller(row.q0 + Config::kTileQ - 1, args.n_q - 1);
  row.q_tiles = args.q_tiles;
  row.n_h = args.n_h;
  return row;
}

/// The work tile at `work_index`, which is the block's number unless blocks are persistent.
/// Neighbouring blocks share a head, so that its keys and values stay in L2; within a head the last
/// query tiles, which see most keys under a causal mask, come first. With args.row_order the rows
/// come as it says. Of split work tiles, `work_index` numbers items.
template <class Config>
__device__ __forceinline__ WorkTile locate_work_tile(const AttendArgs& args, int work_index) {
  const bool ordered = args.row_order != nullptr;
  const int place = row_of_item<Config>(work_index);
  const int number = ordered ? args.row_order[place] : place;
  const int head = number / args.q_tiles;
  const int rest = number - head * args.q_tiles;
  return work_tile<Config>(args, head, ordered ? rest : args.q_tiles - 1 - rest);
}

/// The keys of a gathered work tile, ascending. Empty where nothing is gathered.
struct GatheredKeys {
  const int* keys = nullptr;
  int count = 0;
};

/// A key tile to visit, or none; bit 31 says that it needs the mask (or has keys past the end).
class TileRef {
 public:
  static constexpr u32 kNeedsMask = 0x80000000u;

  __device__ __forceinline__ TileRef() : bits_(kNone) {}
  __device__ __forceinline__ explicit TileRef(u32 bits) : bits_(bits) {}

  __device__ __forceinline__ bool exists() const { return bits_ != kNone; }
  __device__ __forceinline__ bool needs_mask() const { return (bits_ & kNeedsMask) != 0; }
  __device__ __forceinline__ int index() const { return static_cast<int>(bits_ & ~kNeedsMask); }
  __device__ __forceinline__ u32 bits() const { return bits_; }

 private:
  static constexpr u32 kNone = 0x7fffffffu;
  u32 bits_;
};

/// Votes over tiles 32 * chunk + lane of kKeys keys: which are visible, and which of them need no
/// mask.
struct ChunkVotes {
  u32 visible, full;
};

/// The same for a work tile of several heads, where the mask differs by head: visible to one of
/// them, and full for all.
struct HeadVotes {
  bool visible, full;
};
template <class Hooks, class Args>
__device__ __forceinline__ HeadVotes classify_heads(const Args& args, const WorkTile& row, int k0,
                                                    int k1) {
  HeadVotes votes{false, true};
  for (int h = row.h; h < row.h + args.attend.heads_per_kv; ++h) {
    votes.visible |= Hooks::tile_visible(args, row.q0, row.q1, k0, k1, h, row.b);
    votes.full &= Hooks::tile_full(args, row.q0, row.q1, k0, k1, h, row.b);
  }
  return votes;
}

template <class Config, class Hooks, int kKeys = Config::kTileK,
          bool kOfHeads = packs_heads<Config>(), class Args>
__device__ __forceinline__ ChunkVotes classify_chunk(const Args& args, const WorkTile& row,
                                                     int chunk) {
  if constexpr (asks_pairs<Config>()) {
    const ClassWords known = read_classes<Config>(args, row.b, row.h, row.i, chunk);
    return {known.visible, known.full};
  }
  const int j = chunk * 32 + thread_index() % 32;
  const int k0 = j * kKeys;
  const int k1 = smaller(k0 + kKeys - 1, args.attend.n_k - 1);
  bool visible = j < args.attend.k_tiles;
  bool full = visible && k1 - k0 == kKeys - 1;
  if constexpr (kOfHeads && Config::kHasMask) {
    if (visible) {
      const HeadVotes votes = classify_heads<Hooks>(args, row, k0, k1);
      visible = votes.visible;
      full = full && votes.full;
    }
  } else if (Config::kHasMask && visible) {
    visible = Hooks::tile_visible(args, row.q0, row.q1, k0, k1, row.h, row.b);
    full = full && Hooks::tile_full(args, row.q0, row.q1, k0, k1, row.h, row.b);
  }
  return {__ballot_sync(kAllLanes, visible), __ballot_sync(kAllLanes, full)};
}

/// Is the mask made of ranges of keys, whose bounds are cheap? Evaluating other masks takes many
/// registers, so they are asked chunk by chunk, and nothing is looked up ahead.
template <class Config, class Hooks>
inline constexpr bool kHasCheapMask = !Config::kHasMask || kMaskIsRanges<Hooks>;
/// Of such a mask: are its bounds multiples of a parameter, which take divisions?
LACUNA_OPTIONAL_FIELD(bool, has_long_bounds, kHasLongBounds, false)

/// Which of the 32 chunks 32 * group + lane may have a visible tile, by the mask's interval
/// analysis of all keys of each. So a row that sees few of many keys looks into few chunks.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ u32 classify_group(const Args& args, const WorkTile& row, int group) {
  constexpr int kKeys = 32 * Config::kTileK;
  const int k0 = (group * 32 + thread_index() % 32) * kKeys;
  const int k1 = smaller(k0 + kKeys, args.attend.n_k) - 1;
  bool visible = k0 < args.attend.n_k;
  if constexpr (packs_heads<Config>()) {
    visible = visible && classify_heads<Hooks>(args, row, k0, k1).visible;
  } else {
    visible = visible && Hooks::tile_visible(args, row.q0, row.q1, k0, k1, row.h, row.b);
  }
  return __ballot_sync(kAllLanes, visible);
}

/// Tiles the mask leaves visible, in the order of Config::kDescending.
template <class Config, class Hooks, class Args>
class MaskWalk {
 public:
  __device__ __forceinline__ MaskWalk(const Args& args, const WorkTile&, const GatheredKeys&)
      : chunk_(!Config::kDescending ? -1
               : kAsksGroups        ? ceil_div(args.attend.k_tiles, 32 * 32) * 32
                                    : ceil_div(args.attend.k_tiles, 32)) {}

  __device__ __forceinline__ TileRef next(const Args& args, const WorkTile& row) {
    while (votes_.visible == 0) {
      if (!next_chunk(args, row)) return TileRef();
      votes_ = classify_chunk<Config, Hooks>(args, row, chunk_);
    }
    const int bit = take(votes_.visible);
    const bool full = (votes_.full >> bit & 1u) != 0;
    return TileRef(static_cast<u32>(chunk_ * 32 + bit) | (full ? 0u : TileRef::kNeedsMask));
  }

  /// Of the whole row.
  __device__ __forceinline__ int count(const Args& args, const WorkTile& row) const {
    int tiles = 0;
#pragma unroll 4
    for (int chunk = 0; chunk < ceil_div(args.attend.k_tiles, 32); ++chunk)
      tiles += __popc(classify_chunk<Config, Hooks>(args, row, chunk).visible);
    return tiles;
  }

  /// Leaves out the first tiles, fewer than there are.
  __device__ __forceinline__ void skip(const Args& args, const WorkTile& row, int tiles) {
    for (int here = 0; tiles >= here; here = __popc(votes_.visible)) {
      tiles -= here;
      next_chunk(args, row);
      votes_ = classify_chunk<Config, Hooks>(args, row, chunk_);
    }
    for (; tiles > 0; --tiles) next(args, row);
  }

 private:
  static constexpr int kStep = Config::kDescending ? -1 : 1;
  static constexpr bool kAsksGroups =
      Config::kHasMask && kHasCheapMask<Config, Hooks> && !asks_pairs<Config>();

  /// The number of the first bit in the order of the walk, which is cleared.
  __device__ __forceinline__ static int take(u32& bits) {
    const int bit = Config::kDescending ? 31 - __clz(static_cast<int>(bits))
                                        : __ffs(static_cast<int>(bits)) - 1;
    bits &= ~(1u << bit);
    return bit;
  }

  /// To the next chunk that may have a visible tile; false: there is none.
  __device__ __forceinline__ bool next_chunk(const Args& args, const WorkTile& row) {
    const int chunks = ceil_div(args.attend.k_tiles, 32);
    if constexpr (!kAsksGroups) {
      chunk_ += kStep;
      return Config::kDescending ? chunk_ >= 0 : chunk_ < chunks;
    } else {
      while (chunks_ == 0) {
        const int group = (chunk_ >> 5) + kStep;
        if (Config::kDescending ? group < 0 : group * 32 >= chunks) return false;
        chunk_ = group * 32;
        chunks_ = classify_group<Config, Hooks>(args, row, group);
      }
      chunk_ = (chunk_ & ~31) + take(chunks_);
      return true;
    }
  }

  int chunk_;       ///< whose votes are in use
  u32 chunks_ = 0;  ///< of its group, those still to be asked about
  ChunkVotes votes_ = {0, 0};
};

/// Tiles of the row's list.
template <class Config, class Hooks, class Args>
class ListWalk {
 public:
  __device__ __forceinline__ ListWalk(const Args& args, const WorkTile& row, const GatheredKeys&)
      : list_(args.attend.list_indices + row.index() * args.attend.list_capacity),
        left_(smaller(args.attend.list_counts[row.index()], args.attend.list_capacity)),
        next_(Config::kDescending ? left_ - 1 : 0) {}

  __device__ __forceinline__ TileRef next(const Args& args, const WorkTile&) {
    if (left_ <= 0) return TileRef();
    --left_;
    u32 bits = static_cast<u32>(list_[next_]);
    next_ += Config::kDescending ? -1 : 1;
    const bool has_tail = args.attend.n_k % Config::kTileK != 0;
    if (has_tail && TileRef(bits).index() == args.attend.k_tiles - 1) bits |= TileRef::kNeedsMask;
    return TileRef(bits);
  }

  __device__ __forceinline__ int count(const Args&, const WorkTile&) const {
    return larger(left_, 0);
  }
  __device__ __forceinline__ void skip(const Args&, const WorkTile&, int tiles) {
    left_ -= tiles;
    next_ += Config::kDescending ? -tiles : tiles;
  }

 private:
  const int* list_;
  int left_;
  int next_;
};

/// Tiles of gathered keys. What the mask says of each key is unknown until it is asked.
template <class Config, class Args>
class GatherWalk {
 public:
  __device__ __forceinline__ GatherWalk(const Args&, const WorkTile&, const GatheredKeys& gathered)
      : count_(gathered.count),
        left_(ceil_div(gathered.count, Config::kTileK)),
        next_(Config::kDescending ? left_ - 1 : 0) {}

  __device__ __forceinline__ TileRef next(const Args&, const WorkTile&) {
    if (left_ == 0) return TileRef();
    --left_;
    const int j = next_;
    next_ += Config::kDescending ? -1 : 1;
    const bool needs_mask = Config::kHasMask || (j + 1) * Config::kTileK > count_;
    return TileRef(static_cast<u32>(j) | (needs_mask ? TileRef::kNeedsMask : 0u));
  }

 private:
  int count_;
  int left_;
  int next_;
};

/// One share of the tiles of a whole walk, in its order.
template <class Walk, class Config, class Args>
class ShareWalk {
 public:
  __device__ __forceinline__ ShareWalk(const Args& args, const WorkTile& row,
                                       const GatheredKeys& gathered, int share)
      : walk_(args, row, gathered) {
    const TileShare mine = share_of_tiles<Config>(walk_.count(args, row), share);
    left_ = mine.count;
    if (left_ > 0) walk_.skip(args, row, mine.begin);
  }

  __device__ __forceinline__ TileRef next(const Args& args, const WorkTile& row) {
    if (left_ == 0) return TileRef();
    --left_;
    return walk_.next(args, row);
  }

 private:
  Walk walk_;
  int left_;
};

/// The walk of the plan over the key tiles of a work tile; `share`: share_of_item.
template <class Config, class Args>
__device__ __forceinline__ auto begin_walk(const Args& args, const WorkTile& row,
                                           const GatheredKeys& gathered, int share) {
  using Walk = typename Config::Walk;
  if constexpr (SplitKv<Config>::kIsSplit) {
    return Walk(args, row, gathered, share);
  } else {
    return Walk(args, row, gathered);
  }
}

/// The next kAhead + 1 tiles of a walk, so that loads can run ahead of the arithmetic.
template <class Config, class Args, int kAhead>
class TileQueue {
 public:
  __device__ __forceinline__ TileQueue(const Args& args, const WorkTile& row,
                                       const GatheredKeys& gathered, int share)
      : walk_(begin_walk<Config>(args, row, gathered, share)) {
#pragma unroll
    for (int n = 0; n <= kAhead; ++n) tiles_[n] = walk_.next(args, row);
  }

  /// Tile n steps ahead; n is a compile-time constant after unrolling.
  __device__ __forceinline__ TileRef ahead(int n) const { return tiles_[n]; }

  __device__ __forceinline__ void advance(const Args& args, const WorkTile& row) {
#pragma unroll
    for (int n = 0; n < kAhead; ++n) tiles_[n] = tiles_[n + 1];
    tiles_[kAhead] = walk_.next(args, row);
  }

 private:
  typename Config::Walk walk_;
  TileRef tiles_[kAhead + 1];
};

}  // namespace lacuna
