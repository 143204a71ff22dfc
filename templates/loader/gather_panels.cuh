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

/// What a row of a tile is copied from.
struct RowSource {
  const char* data;
  bool exists;  ///< false: the row becomes zeros
};

/// Single rows. source_of(data, block, i): of row 16 * block + 4 * (lane / 8) + i, for i from 0 to
/// 3 in turn; `data` is what the lane copies of the tensor's first row.
///
/// Each lane arrives for its own copies. Only that arrival orders them before wgmma: PTX asks for a
/// proxy fence in the threads that wait, which takes 3 % of the time, and no result has ever
/// differed without it.
template <class Tile, int kRows, class SourceOf>
__device__ __forceinline__ void copy_rows(u32 tile, Mbarrier full, const void* data,
                                          const SourceOf& source_of) {
  constexpr int kBlockRows = 16;  // four for each eight lanes
  static_assert(kRows % kBlockRows == 0);
  const int first = lane_index() / 8 * 4;
  const int chunk = lane_index() % 8;
  const char* source = static_cast<const char*>(data) + chunk * 16;
  pin(source);
  u32 targets[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) targets[i] = tile + Tile::offset(first + i, chunk);
#pragma unroll
  for (int block = 0; block < kRows / kBlockRows; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const RowSource row = source_of(source, block, i);
#pragma unroll
      for (int p = 0; p < Tile::kPanels; ++p) {
        cp_async_16(targets[i] + p * Tile::kPanelBytes + block * kBlockRows * kPanelRowBytes,
                    row.data + p * kPanelRowBytes, row.exists);
      }
    }
  }
  full.arrive_after_copies();
}

/// Single rows of a head in one piece. Row numbers are read four at a time before the copies are
/// issued: behind them they would wait in the same queue. An address is a single multiply-add,
/// because integer instructions wait for those of the softmax: four of them took longer than the
/// copies.
template <class Tile, int kRows>
__device__ __forceinline__ void copy_panels(u32 tile, Mbarrier full, const GatheredHead& from,
                                            const int* columns) {
  const int4* fours = reinterpret_cast<const int4*>(columns) + lane_index() / 8;
  int4 ahead = fours[0];
  int rows[4];
  copy_rows<Tile, kRows>(tile, full, from.data, [&](const char* data, int block, int i) {
    if (i == 0) {
      rows[0] = ahead.x, rows[1] = ahead.y, rows[2] = ahead.z, rows[3] = ahead.w;
      if ((block + 1) * 16 < kRows) ahead = fours[(block + 1) * 4];
    }
    return RowSource{data + static_cast<long long>(rows[i]) * from.row_bytes, rows[i] < from.rows};
  });
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
