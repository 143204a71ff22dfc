// A tile of rows in shared memory, without padding, its 16-byte chunks permuted within each row so
// that eight consecutive rows of one chunk column lie in all 32 banks (one ldmatrix phase).
//
// Rows of a multiple of 128 bytes: chunk ^ (row % 8). Rows of 64 bytes modulo 128: two rows already
// differ by half the banks, so chunk ^ (row / 2 % 4); of 32 modulo 64: chunk ^ (row / 4 % 2). Bases
// are 128-byte aligned.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

template <int kRows_, int kRowBytes_>
struct ByteTile {
  static constexpr int kRows = kRows_;
  static constexpr int kRowBytes = kRowBytes_;
  static constexpr int kBytes = kRows * kRowBytes;
  static constexpr int kChunks = kRowBytes / 16;  ///< in a row
  /// Chunks permute within so many bytes.
  static constexpr int kSwizzleBytes = smaller(128, power_of_two_factor(kRowBytes));
  static_assert(kRowBytes % 32 == 0 && kRows % 8 == 0);

  /// What is XORed into the chunk index of a row; repeats every 8 rows.
  __host__ __device__ static constexpr int phase(int row) {
    return row / (128 / kSwizzleBytes) % (kSwizzleBytes / 16);
  }

  /// Byte offset of a chunk from the tile's base.
  __device__ __forceinline__ static u32 offset(int row, int chunk) {
    return static_cast<u32>(row * kRowBytes + ((chunk ^ phase(row)) << 4));
  }
};

/// A tile of 16-bit elements.
template <int kRows, int kElements>
using SmemTile = ByteTile<kRows, kElements * 2>;

/// One lane's ldmatrix addresses in a tile. Chunks permute by XOR within aligned groups, so that a
/// step of 32 bytes (16 elements of 16 bits) is one XOR of a constant, and a step of 16 rows an
/// immediate offset.
template <class Tile>
struct LaneAddress {
  u32 first;  ///< of the lane's row and chunk in the first block of 16 rows and 32 bytes

  /// For a lane whose matrix begins at this row and chunk (0 or 1) of a block.
  __device__ __forceinline__ LaneAddress(u32 tile, int row, int chunk)
      : first(tile + Tile::offset(row, chunk)) {}

  /// Of the block at compile-time steps from the tile's base.
  __device__ __forceinline__ u32 at(int row_step, int column_step) const {
    const int column = column_step * 32;
    const int group = column / Tile::kSwizzleBytes * Tile::kSwizzleBytes;
    return (first ^ static_cast<u32>(column - group)) +
           static_cast<u32>(group + row_step * 16 * Tile::kRowBytes);
  }
};

}  // namespace lacuna
