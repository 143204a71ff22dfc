// A tile of 16-bit rows in shared memory, without padding, its 16-byte chunks permuted within each
// row so that eight consecutive rows of one chunk column lie in all 32 banks (one ldmatrix phase).
//
// Rows of a multiple of 128 bytes: chunk ^ (row % 8). Rows of 64 bytes modulo 128 (head dim 96):
// two rows already differ by half the banks, so chunk ^ (row / 2 % 4). Bases are 128-byte aligned.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

template <int kRows_, int kHeadDim>
struct SmemTile {
  static constexpr int kRows = kRows_;
  static constexpr int kRowBytes = kHeadDim * 2;
  static constexpr int kBytes = kRows * kRowBytes;
  static constexpr int kChunks = kRowBytes / 16;  ///< in a row
  static constexpr int kElementsPerChunk = 8;
  static constexpr int kSwizzleBytes = kRowBytes % 128 == 0 ? 128 : 64;  ///< chunks permute within
  static_assert(kRowBytes % 64 == 0 && kRows % 8 == 0);

  /// What is XORed into the chunk index of a row; repeats every 8 rows.
  __device__ __forceinline__ static int phase(int row) {
    return kSwizzleBytes == 128 ? row % 8 : row / 2 % 4;
  }

  /// Byte offset of a chunk from the tile's base.
  __device__ __forceinline__ static u32 offset(int row, int chunk) {
    return static_cast<u32>(row * kRowBytes + ((chunk ^ phase(row)) << 4));
  }
};

/// One lane's ldmatrix addresses in a tile. Chunks permute by XOR within aligned groups, so that a
/// step of 16 columns is one XOR of a constant, and a step of 16 rows an immediate offset.
template <class Tile>
struct LaneAddress {
  u32 first;  ///< of the lane's row and chunk in the first 16x16 block

  /// For a lane whose matrix begins at this row and chunk (0 or 1) of a 16x16 block.
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
