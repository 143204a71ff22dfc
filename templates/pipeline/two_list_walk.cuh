// The tiles of two work tiles that a block of the wgmma family takes together: neighbours in their
// head, one for each warpgroup, each with a list. A tile that both list is loaded once.
//
//   list of the first work tile     0 1   3 4   6
//   list of the second work tile    0   2 3   5
//   steps of two tiles              both 0 3    first 1 4    second 2 5    first 6 .
//
// All tiles of a step are listed by the same work tiles, so a warpgroup multiplies only its own. A
// tile waits until others of its kind fill a step, or until the lists end. With a gate, whose
// decisions depend on the tiles before, tiles keep the order of the lists, and a warpgroup skips
// the tiles of a step that it does not list.
//
// Lists are read for 32 neighbouring tiles at a time, an entry by each lane, and become words of
// bits. Lane n holds the n-th tile of a step.
#pragma once

#include "arch/redux.cuh"
#include "pipeline/gate.cuh"
#include "pipeline/sequence_tile.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

/// A tile that some of the rows list, or none, and for which of them it needs the mask. Rows are
/// bits.
class SharedTile {
 public:
  __device__ __forceinline__ SharedTile() : bits_(0) {}
  __device__ __forceinline__ explicit SharedTile(u32 bits) : bits_(bits) {}
  __device__ __forceinline__ SharedTile(int index, u32 listed, u32 masked)
      : bits_(static_cast<u32>(index) | listed << kListed | masked << kMasked) {}

  __device__ __forceinline__ bool exists() const { return listed() != 0; }
  __device__ __forceinline__ u32 listed() const { return bits_ >> kListed & 3u; }
  __device__ __forceinline__ int index() const {
    return static_cast<int>(bits_ & ((1u << kListed) - 1u));
  }
  /// What a row has of it.
  __device__ __forceinline__ TileRef of(int row) const {
    if ((listed() >> row & 1u) == 0) return TileRef();
    const bool masked = (bits_ >> (kMasked + row) & 1u) != 0;
    return TileRef(static_cast<u32>(index()) | (masked ? TileRef::kNeedsMask : 0u));
  }
  __device__ __forceinline__ u32 bits() const { return bits_; }

 private:
  static constexpr int kListed = 28, kMasked = 30;  ///< first of two bits
  u32 bits_;
};

/// By one whole warp, all of whose lanes say the same. Lists ascend.
template <class Config>
class SharedWalk {
  static constexpr int kRows = Config::kWorkTiles;
  static constexpr int kStepTiles = Config::kStepKeys / Config::kTileK;
  /// Places for the tiles of a kind, in lanes.
  static constexpr int kPlaces = 8;
  static constexpr bool kKeepsOrder = Config::kGateScope != GateScope::kNone;
  static constexpr int kKinds = kKeepsOrder ? 1 : (1 << kRows) - 1;
  static_assert(kRows == 2 && kStepTiles <= kPlaces && kKinds * kPlaces <= 32);

 public:
  /// `first`: of the rows; a last one of its head may be alone. Of split work tiles: the same share
  /// of each list.
  template <class Args, class Row>
  __device__ __forceinline__ SharedWalk(const Args& args, const Row& first, int share) {
    const AttendArgs& attend = args.attend;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool exists = first.i + r < first.q_tiles;
      const long long row = first.index() + (exists ? r : 0);
      left_[r] = exists ? smaller(attend.list_counts[row], attend.list_capacity) : 0;
      next_[r] = attend.list_indices + row * attend.list_capacity +
                 (Config::kDescending ? left_[r] - 1 : 0);
      if constexpr (SplitKv<Config>::kIsSplit || has_sequence_tiles<Config>()) {
        const TileShare mine = share_of_row<Config>(first, larger(left_[r], 0), share);
        left_[r] = mine.count;
        next_[r] += Config::kDescending ? -mine.begin : mine.begin;
      }
      listed_[r] = masked_[r] = 0;
    }
    tail_ = attend.n_k % Config::kTileK != 0 ? attend.k_tiles - 1 : -1;
  }

  /// The next step; none: no lane has a tile. Every step but those at the end is full.
  __device__ __forceinline__ SharedTile take_step() {
    for (SharedTile tile = next(); tile.exists(); tile = next()) {
      const int kind = kKeepsOrder ? 0 : static_cast<int>(tile.listed()) - 1;
      const int place = waiting(kind);
      if (lane_index() == kind * kPlaces + place) tiles_ = tile;
      counts_ += 1u << kind * kCountBits;
      if (place + 1 == kStepTiles) return take(kind);
    }
#pragma unroll
    for (int kind = 0; kind < kKinds; ++kind)
      if (waiting(kind) > 0) return take(kind);
    return SharedTile();
  }

 private:
  static constexpr int kCountBits = 8;

  /// Tiles of a kind that wait.
  __device__ __forceinline__ int waiting(int kind) const {
    return static_cast<int>(counts_ >> kind * kCountBits & 255u);
  }

  __device__ __forceinline__ SharedTile take(int kind) {
    const int place = lane_index() % kPlaces;
    const u32 tile = __shfl_sync(kAllLanes, tiles_.bits(), kind * kPlaces + place);
    const bool is_there = lane_index() < waiting(kind);
    counts_ &= ~(255u << kind * kCountBits);
    return is_there ? SharedTile(tile) : SharedTile();
  }

  /// The next tile of any row.
  __device__ __forceinline__ SharedTile next() {
    if ((listed_[0] | listed_[1]) == 0 && !read()) return SharedTile();
    const u32 any = listed_[0] | listed_[1];
    const int bit =
        Config::kDescending ? 31 - __clz(static_cast<int>(any)) : __ffs(static_cast<int>(any)) - 1;
    u32 listed = 0, masked = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      listed |= (listed_[r] >> bit & 1u) << r;
      masked |= (masked_[r] >> bit & 1u) << r;
      listed_[r] &= ~(1u << bit);
    }
    const int index = chunk_ * 32 + bit;
    return SharedTile(index, listed, index == tail_ ? listed : masked);
  }

  /// Which of the 32 tiles are listed that the nearest entry of any row is among.
  __device__ __forceinline__ bool read() {
    if (left_[0] == 0 && left_[1] == 0) return false;
    u32 entry[kRows];
    int chunks[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int ahead = Config::kDescending ? -lane_index() : lane_index();
      entry[r] = lane_index() < left_[r] ? static_cast<u32>(next_[r][ahead]) : 0u;
      const int index = __shfl_sync(kAllLanes, TileRef(entry[r]).index(), 0);
      chunks[r] = left_[r] > 0 ? index / 32 : Config::kDescending ? -1 : 0x7fffffff;
    }
    chunk_ = Config::kDescending ? larger(chunks[0], chunks[1]) : smaller(chunks[0], chunks[1]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const TileRef tile(entry[r]);
      const bool is_here = lane_index() < left_[r] && tile.index() / 32 == chunk_;
      const u32 bit = is_here ? 1u << tile.index() % 32 : 0u;
      listed_[r] = or_over_lanes(bit);
      masked_[r] = or_over_lanes(tile.needs_mask() ? bit : 0u);
      const int taken = __popc(__ballot_sync(kAllLanes, is_here));
      left_[r] -= taken;
      next_[r] += Config::kDescending ? -taken : taken;
    }
    return true;
  }

  const int* next_[kRows];  ///< entry of each list
  int left_[kRows];         ///< entries from there on
  int chunk_ = 0;           ///< 32 * chunk_: the first tile of the words
  u32 listed_[kRows], masked_[kRows];
  int tail_;          ///< the tile with keys past the end, or -1
  SharedTile tiles_;  ///< of lane kind * kPlaces + n: the n-th that waits
  u32 counts_ = 0;    ///< of those that wait, kCountBits a kind
};

}  // namespace lacuna
