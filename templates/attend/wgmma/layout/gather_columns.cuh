// The kept columns of work tiles in the wgmma family: one warp of the producer expands the bits
// of a row into a ring in shared memory and cuts it into steps, for the warps that load. No list of
// keys is ever written to global memory, and rows follow each other without a pause.
//
// A row's last step is filled up with a column behind the last key: its keys are loaded as zeros
// and masked like all that do not exist.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/warpgroup.cuh"
#include "pipeline/gathered_keys.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

/// What a loading warp is told. `tile` is where the step's columns begin in the ring; none: a row
/// without any.
struct GatheredStep {
  enum Flags : u32 { kFirstOfRow = 1, kLastOfRow = 2, kEnd = 4 };
  u32 flags;
  TileRef tile;

  __device__ __forceinline__ bool has(Flags flag) const { return (flags & flag) != 0; }
};

/// What the producer's warps and the consumers share when columns are gathered; else nothing.
template <bool kGathers>
struct ColumnRing {};
template <>
struct ColumnRing<true> {
  /// Columns that a round of expansion looks at: 64 bits a lane.
  static constexpr int kRoundColumns = 64 * 32;
  /// A round may keep them all, beside those of steps that wait or are shown to consumers.
  static constexpr int kSlots = kColumnRingSlots;
  static_assert(kSlots == 2 * kRoundColumns);
  static constexpr int kSteps = 4;  ///< that wait; as many rows at most

  alignas(16) int columns[kSlots];
  unsigned long long step_full[kSteps], step_empty[kSteps];
  GatheredStep steps[kSteps];
  WorkTile rows[kSteps];
};

/// Which key of its head is in a slot of a tile. A tile of gathered ones is where it begins in the
/// ring.
template <class Config, bool kGathers = Config::kGathers>
struct TileKeys {
  TileKeys() = default;
  __device__ __forceinline__ explicit TileKeys(const ColumnRing<false>&) {}

  __device__ __forceinline__ int at(TileRef tile, int slot) const {
    return tile.index() * Config::kTileK + slot;
  }
};
template <class Config>
struct TileKeys<Config, true> {
  const int* columns;

  __device__ __forceinline__ explicit TileKeys(const ColumnRing<true>& ring)
      : columns(ring.columns) {}

  __device__ __forceinline__ int at(TileRef tile, int slot) const {
    return columns[tile.index() + slot / Config::kKeepK] * Config::kKeepK + slot % Config::kKeepK;
  }
};

/// Expands rows, one after the other; by one warp.
template <class Config, class Args>
class ColumnStream {
  using Ring = ColumnRing<true>;
  static constexpr int kStepColumns = Config::kStepKeys / Config::kKeepK;
  static_assert(Ring::kSlots % kStepColumns == 0, "a step lies in one piece");

 public:
  __device__ __forceinline__ explicit ColumnStream(int* columns) : columns_(columns) {}

  __device__ __forceinline__ void begin(const Args& args, const WorkTile& row) {
    const int heads = Config::kSharedHeads ? args.attend.heads_per_kv : 1;
    const long long head = static_cast<long long>(row.b) * row.n_h + row.h - row.h % heads;
    bits_ = args.predict.kept + (head * row.q_tiles + row.i) * args.predict.keep_words;
    next_word_ = lane_index() * 2;
    fetch(args);
  }

  /// Where in the ring the row's next step begins; -1: there is none.
  __device__ __forceinline__ int take(const Args& args) {
    while (written_ - taken_ < kStepColumns && has_more(args)) expand(args);
    const u32 have = written_ - taken_;
    if (have == 0) return -1;
    for (u32 n = lane_index(); n + have < kStepColumns; n += 32)
      put(written_ + n, args.predict.keep_k_tiles);
    if (have < kStepColumns) written_ = taken_ + kStepColumns;
    __syncwarp();
    const u32 position = taken_ % Ring::kSlots;
    taken_ += kStepColumns;
    return static_cast<int>(position);
  }

 private:
  __device__ __forceinline__ bool has_more(const Args& args) const {
    return next_word_ - lane_index() * 2 < args.predict.keep_words;
  }

  __device__ __forceinline__ void fetch(const Args& args) {
    ahead_[0] = ahead_[1] = 0;
    const int words = args.predict.keep_words;
    const u32* from = bits_ + next_word_;
    const int heads = Config::kSharedHeads ? args.attend.heads_per_kv : 1;
#pragma unroll 1
    for (int h = 0; h < heads; ++h, from += args.attend.q_tiles * words) {
      if (next_word_ < words) ahead_[0] |= from[0];
      if (next_word_ + 1 < words) ahead_[1] |= from[1];
    }
  }

  /// One round.
  __device__ __forceinline__ void expand(const Args& args) {
    const u32 words[2] = {ahead_[0], ahead_[1]};
    const int first = next_word_ * 32;
    next_word_ += 64;
    fetch(args);
    const int mine = __popc(words[0]) + __popc(words[1]);
    const int upto = inclusive_sum_over_lanes(mine);
    u32 slot = written_ + upto - mine;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      for (u32 bits = words[n]; bits != 0; bits &= bits - 1)
        put(slot++, first + n * 32 + __ffs(static_cast<int>(bits)) - 1);
    }
    written_ += __shfl_sync(kAllLanes, upto, 31);
  }

  __device__ __forceinline__ void put(u32 slot, int column) {
    columns_[slot % Ring::kSlots] = column;
  }

  int* const columns_;
  const u32* bits_ = nullptr;    ///< of the row, or of the first of the heads that share them
  int next_word_ = 0;            ///< of the lane's two that are ahead
  u32 ahead_[2] = {0, 0};        ///< fetched before they are wanted
  u32 written_ = 0, taken_ = 0;  ///< columns since the kernel began
};

}  // namespace lacuna
