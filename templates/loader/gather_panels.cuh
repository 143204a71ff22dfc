// Loads rows that lie anywhere in a head into a tile of panels (tile/panel_tile.cuh), by one warp.
// Rows come in columns of kColumn neighbours, by a list of column numbers in shared memory; rows
// past the head's last become zeros.
//
// The copy engine brings columns of whole lines of the swizzle. Single rows are shared out: all by
// boxes would take more time for the engine's instructions than the products, and all by cp.async,
// eight lanes 128 bytes, more of shared memory's, which it fills by 32 bytes where the engine
// writes 128.
#pragma once

#include "arch/cp_async.cuh"
#include "arch/tma.cuh"
#include "arch/warpgroup.cuh"
#include "base/pin.cuh"
#include "tile/panel_tile.cuh"

namespace lacuna {

/// Whether copies of threads bring the rows, which arrive one by one, lane by lane.
template <int kColumn>
inline constexpr bool kCopiesRows = kColumn < kSwizzleRows;

/// A head of a tensor, in the terms of both ways.
struct GatheredHead {
  const void* data;  ///< first row; rows begin at multiples of 16 bytes
  int row_bytes;     ///< from row to row; 31 bits, which the runtime checks
  int rows;
  int head, batch;  ///< of the tensor's map, whose boxes are columns
};

/// Single rows. Row numbers are read four at a time, ahead of the copies, behind which they would
/// wait in the same queue. An address is one multiply and add: it waits for those of the softmax,
/// and four of them took more time than the copies.
///
/// Each lane arrives for its own copies. They are ordered before wgmma by that arrival alone: a
/// proxy fence of those who wait, which PTX asks for, takes 3 % of the time, and no result has ever
/// differed without.
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
