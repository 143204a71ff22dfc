// Loads rows that lie anywhere in a head into a tile of panels (tile/panel_tile.cuh), by one warp.
// A list in shared memory names columns of kColumn neighbouring rows; rows past the head's last
// become zeros.
//
// The copy engine loads columns that fill whole lines of the swizzle. Single rows are divided
// between the engine and cp.async: boxes for all of them would take longer to issue than the
// products take, and cp.async for all of them would take longer in shared memory, which it writes
// by 32 bytes where the engine writes 128.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "arch/copy/tma.cuh"
#include "arch/warpgroup.cuh"
#include "base/pin.cuh"
#include "tile/panel_tile.cuh"

namespace lacuna {

/// Are rows copied by threads, each of which arrives for its own?
template <int kColumn>
inline constexpr bool kCopiesRows = kColumn < kSwizzleRows;

/// A head of a tensor, as cp.async and as the copy engine address it.
struct GatheredHead {
  const void* data;  ///< first row; rows begin at multiples of 16 bytes
  int row_bytes;     ///< from row to row; 31 bits, which the runtime checks
  int rows;
  int head, batch;  ///< of the tensor's map, whose boxes are columns
};

/// Single rows. Row numbers are read four at a time before the copies are issued: behind them they
/// would wait in the same queue. An address is a single multiply-add, because integer instructions
/// wait for those of the softmax: four of them took longer than the copies.
///
/// Each lane arrives for its own copies. Only that arrival orders them before wgmma: PTX asks for a
/// proxy fence in the threads that wait, which takes 3 % of the time, and no result has ever
/// differed without it.
template <class Tile, int kRows>
__device__ __forceinline__ void copy_panels(u32 tile, Mbarrier full, const GatheredHead& from,
                                            const int* columns) {
  constexpr int kBlockRows = 16;  // four for each eight lanes
  constexpr int kBlocks = kRows / kBlockRows;
  static_assert(kRows % kBlockRows == 0);
  const int first = lane_index() / 8 * 4;
  const int chunk = lane_index() % 8;
  const char* source = static_cast<const char*>(from.data) + chunk * 16;
  pin(source);
  u32 targets[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) targets[i] = tile + Tile::offset(first + i, chunk);
  const int4* fours = reinterpret_cast<const int4*>(columns + first);
  int4 ahead = fours[0];
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    const int rows[4] = {ahead.x, ahead.y, ahead.z, ahead.w};
    if (block + 1 < kBlocks) ahead = fours[(block + 1) * (kBlockRows / 4)];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const char* line = source + static_cast<long long>(rows[i]) * from.row_bytes;
#pragma unroll
      for (int p = 0; p < Tile::kPanels; ++p) {
        cp_async_16(targets[i] + p * Tile::kPanelBytes + block * kBlockRows * kPanelRowBytes,
                    line + p * kPanelRowBytes, rows[i] < from.rows);
      }
    }
  }
  full.arrive_after_copies();
}

/// Columns as boxes, by one lane: those from row kFirst of the tile on. Their numbers are read
/// several at a time: a box after each would wait for its own.
template <class Tile, int kColumn, int kFirst>
__device__ __forceinline__ void load_boxes(const TensorMap& map, u32 tile, Mbarrier full,
                                           const GatheredHead& from, const int* columns) {
  constexpr int kBegin = kFirst / kColumn, kEnd = Tile::kRows / kColumn;
  constexpr int kAtOnce = smaller(8, kEnd - kBegin);
  static_assert((kEnd - kBegin) % kAtOnce == 0);
  if (elect_one()) {
    const auto policy = l2_policy<L2Policy::kKeepLast>();
    full.arrive_expecting(Tile::kPanels * (Tile::kRows - kFirst) * kPanelRowBytes);
    tile += kFirst * kPanelRowBytes;
#pragma unroll 1
    for (int n = kBegin; n < kEnd; n += kAtOnce, tile += kAtOnce * kColumn * kPanelRowBytes) {
      int tokens[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) tokens[i] = columns[n + i] * kColumn;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int p = 0; p < Tile::kPanels; ++p) {
          tma_load(map, tile + p * Tile::kPanelBytes + i * kColumn * kPanelRowBytes, full,
                   {tokens[i], p, from.head, from.batch}, policy);
        }
      }
    }
  }
  __syncwarp();
}

}  // namespace lacuna
