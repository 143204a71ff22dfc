// A tile of 8-bit rows in shared memory as the copy engine lays it down and wgmma reads it: rows of
// 64 or 128 bytes, contiguous in the product's depth, one behind the other. The 16-byte chunks of a
// row are permuted within it, by what follows from the address alone: of 128 bytes as those of a
// panel (tile/panel_tile.cuh), of 64 bytes chunk c of row r lies at c ^ (r / 2 % 4).
#pragma once

#include "tile/panel_tile.cuh"

namespace lacuna {

template <int kRows, int kRowBytes>
struct BytePanel {
  static constexpr int kBytes = kRows * kRowBytes;
  static_assert(kRows % 8 == 0 && (kRowBytes == 64 || kRowBytes == 128));
  static_assert(kBytes % 1024 == 0, "a tile behind another begins where the permutation does");

  __device__ __forceinline__ static OperandDescriptor along_rows(u32 tile) {
    return OperandDescriptor(tile, 16, 8 * kRowBytes,
                             kRowBytes == 64 ? Swizzle::k64 : Swizzle::k128);
  }
  /// To the step-th 32 elements of all rows, from `row` on, a multiple of 8 rows.
  __host__ __device__ static constexpr int along_step(int step, int row = 0) {
    return row * kRowBytes + step * 32;
  }
};

}  // namespace lacuna
