// The kept columns of work tiles in the wgmma family: one warp of the producer expands the bits
// of a row into a ring in shared memory and cuts it into steps, for the warps that load. No list of
// keys is ever written to global memory, and rows follow each other without a pause.
//
// A block that takes two work tiles together gathers the columns that either of them keeps, each
// once. Beside each column is noted which of the two leaves it out; the warpgroup of that work tile
// masks the column. A warpgroup skips a step of which its work tile keeps nothing.
//
// A row's last step is filled up with a column behind the last key: its keys are loaded as zeros
// and masked like all that do not exist.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/redux.cuh"
#include "arch/warpgroup.cuh"
#include "pipeline/gathered_keys.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

/// What a loading warp is told. `tile` is where the step's columns begin in the ring; none: a row
/// without any.
struct GatheredStep {
  /// The last two exist for each work tile of the block, shifted by its number: the work tile keeps
  /// none of the step's columns, or leaves some of them out.
  enum Flags : u32 { kFirstOfRow = 1, kLastOfRow = 2, kEnd = 4, kKeepsNone = 8, kLeavesSome = 32 };
  u32 flags;
  TileRef tile;

  __device__ __forceinline__ bool has(Flags flag, int r = 0) const {
    return (flags >> r & flag) != 0;
  }
};

/// What the producer's warps and the consumers share when columns are gathered; else nothing.
template <bool kGathers, int kWorkTiles, class Row>
struct ColumnRing {};
template <int kWorkTiles, class Row>
struct ColumnRing<true, kWorkTiles, Row> {
  /// Columns that a round of expansion looks at: 64 bits a lane.
  static constexpr int kRoundColumns = 64 * 32;
  /// A round may keep them all, beside those of steps that wait or are shown to consumers.
  static constexpr int kSlots = kColumnRingSlots;
  static_assert(kSlots == 2 * kRoundColumns);
  static constexpr int kSteps = 4;  ///< that wait
  /// Of each of these steps a row may be noted, and the next row, whose steps are still to come.
  static constexpr int kRowPlaces = 2 * kSteps;

  alignas(16) int columns[kSlots];
  unsigned long long step_full[kSteps], step_empty[kSteps];
  GatheredStep steps[kSteps];
  Row rows[kRowPlaces];
  /// If the block has two work tiles: for each column, which of them leave it out, a bit each. And
  /// for each of the last kRecentSteps steps, which of its keys each work tile keeps, a bit each.
  static constexpr int kRecentSteps = kColumnRingSteps;
  alignas(4) unsigned char left_out[kWorkTiles > 1 ? kSlots : 4];
  u32 kept[kWorkTiles > 1 ? kRecentSteps : 1][kWorkTiles][kMostRingStepKeys / 32];
};

/// Which key of its head is in a slot of a tile. A tile of gathered ones is where it begins in the
/// ring.
template <class Config, bool kGathers = Config::kGathers>
struct TileKeys {
  TileKeys() = default;
  template <class Ring>
  __device__ __forceinline__ TileKeys(const Ring&, int) {}

  __device__ __forceinline__ int at(TileRef tile, int slot) const {
    return tile.index() * Config::kTileK + slot;
  }
};
template <class Config>
struct TileKeys<Config, true> {
  using Ring = ColumnRing<true, Config::kWorkTiles, typename Config::Row>;
  const Ring& ring;
  int work_tile;  ///< of those that the block takes together

  __device__ __forceinline__ TileKeys(const Ring& columns_ring, int number)
      : ring(columns_ring), work_tile(number) {}

  __device__ __forceinline__ int at(TileRef tile, int slot) const {
    return ring.columns[tile.index() + slot / Config::kKeepK] * Config::kKeepK +
           slot % Config::kKeepK;
  }
  /// Which of the 32 keys from `slot` on the work tile keeps.
  __device__ __forceinline__ u32 kept_word(TileRef tile, int slot) const {
    const int key = tile.index() * Config::kKeepK + slot;
    const int step = key / Config::kStepKeys % Ring::kRecentSteps;
    return ring.kept[step][work_tile][key % Config::kStepKeys / 32];
  }
};

/// Expands rows, or pairs of them, one after the other; by one warp.
template <class Config, class Args>
class ColumnStream {
  static constexpr int kRows = Config::kWorkTiles;
  using Ring = ColumnRing<true, kRows, typename Config::Row>;
  static constexpr int kStepColumns = Config::kStepKeys / Config::kKeepK;
  /// Words of a row's bits that a lane expands in a round. For two rows it has the registers for
  /// only one word of each.
  static constexpr int kWords = 2 / kRows;
  static_assert(Ring::kSlots % kStepColumns == 0, "a step lies in one piece");

 public:
  __device__ __forceinline__ explicit ColumnStream(Ring& ring) : ring_(ring) {}

  __device__ __forceinline__ void begin(const Args& args, const WorkTile& row) {
    const int heads = Config::kSharedHeads ? args.attend.heads_per_kv : 1;
    const long long head = static_cast<long long>(row.b) * row.n_h + row.h - row.h % heads;
    bits_ = args.predict.kept + (head * row.q_tiles + row.i) * args.predict.keep_words;
    rows_ = smaller(kRows, row.q_tiles - row.i);
    next_word_ = lane_index() * kWords;
    fetch(args);
  }

  /// Where in the ring the row's next step begins; -1: there is none.
  __device__ __forceinline__ int take(const Args& args) {
    while (written_ - taken_ < kStepColumns && has_more(args)) expand(args);
    const u32 have = written_ - taken_;
    if (have == 0) return -1;
#pragma unroll 1
    for (u32 n = lane_index(); n + have < kStepColumns; n += 32)
      put(written_ + n, args.predict.keep_k_tiles, (1u << kRows) - 1u);
    if (have < kStepColumns) written_ = taken_ + kStepColumns;
    __syncwarp();
    const u32 position = taken_ % Ring::kSlots;
    taken_ += kStepColumns;
    return static_cast<int>(position);
  }

  /// Notes the keys that each work tile keeps of the step that begins there; returns its
  /// GatheredStep::Flags.
  __device__ __forceinline__ u32 note_kept(int position) const {
    if constexpr (kRows == 1) return 0;
    auto& kept = ring_.kept[position / kStepColumns % Ring::kRecentSteps];
    u32 flags = ((1u << kRows) - 1u) * GatheredStep::kKeepsNone;
#pragma unroll 1
    for (int word = 0; word < Config::kStepKeys / 32; ++word) {
      const int column = (word * 32 + lane_index()) / Config::kKeepK;
      const u32 left_out = ring_.left_out[position + column];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const u32 keys = __ballot_sync(kAllLanes, (left_out >> r & 1u) == 0);
        if (keys != 0) flags &= ~(static_cast<u32>(GatheredStep::kKeepsNone) << r);
        if (keys != kAllLanes) flags |= GatheredStep::kLeavesSome << r;
        if (lane_index() == 0) kept[r][word] = keys;
      }
    }
    return flags;
  }

 private:
  __device__ __forceinline__ bool has_more(const Args& args) const {
    return next_word_ - lane_index() * kWords < args.predict.keep_words;
  }

  __device__ __forceinline__ void fetch(const Args& args) {
    const int words = args.predict.keep_words;
    const int heads = Config::kSharedHeads ? args.attend.heads_per_kv : 1;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int n = 0; n < kWords; ++n) ahead_[r][n] = 0;
      if (r >= rows_) continue;
      const u32* from = bits_ + r * words + next_word_;
#pragma unroll 1
      for (int h = 0; h < heads; ++h, from += args.attend.q_tiles * words) {
#pragma unroll
        for (int n = 0; n < kWords; ++n)
          if (next_word_ + n < words) ahead_[r][n] |= from[n];
      }
    }
  }

  /// One round.
  __device__ __forceinline__ void expand(const Args& args) {
    u32 kept[kRows][kWords], any[kWords] = {};
    int mine = 0;
#pragma unroll
    for (int n = 0; n < kWords; ++n) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) any[n] |= kept[r][n] = ahead_[r][n];
      mine += __popc(any[n]);
    }
    const int first = next_word_ * 32;
    next_word_ += 32 * kWords;
    fetch(args);
    const int upto = inclusive_sum_over_lanes(mine);
    u32 slot = written_ + upto - mine;
#pragma unroll
    for (int n = 0; n < kWords; ++n) {
      for (u32 bits = any[n]; bits != 0; bits &= bits - 1) {
        const int bit = __ffs(static_cast<int>(bits)) - 1;
        u32 left_out = 0;
#pragma unroll
        for (int r = 0; r < kRows; ++r) left_out |= (~kept[r][n] >> bit & 1u) << r;
        put(slot++, first + n * 32 + bit, left_out);
      }
    }
    written_ += __shfl_sync(kAllLanes, upto, 31);
  }

  __device__ __forceinline__ void put(u32 slot, int column, u32 left_out) {
    ring_.columns[slot % Ring::kSlots] = column;
    if constexpr (kRows > 1)
      ring_.left_out[slot % Ring::kSlots] = static_cast<unsigned char>(left_out);
  }

  Ring& ring_;
  const u32* bits_ = nullptr;      ///< of the row, or of the first of the heads that share them
  int rows_ = 1;                   ///< a last one of its head may be alone
  int next_word_ = 0;              ///< of the lane's two that are ahead
  u32 ahead_[kRows][kWords] = {};  ///< fetched before they are wanted
  u32 written_ = 0, taken_ = 0;    ///< columns since the kernel began
};

}  // namespace lacuna
