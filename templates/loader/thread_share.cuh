// What each thread copies of a tile: the same chunks of every kRowsPerPass-th row.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Tile, int kThreads>
class ThreadShare {
 public:
  /// Up to 8 neighbouring lanes share a row, so that a warp reads whole 64- or 128-byte segments; 4
  /// where one warp loads, whose lanes have to span 8 rows.
  static constexpr int kLanesPerRow =
      smaller(kThreads == 32 ? 4 : 8, power_of_two_factor(Tile::kChunks));
  /// Chunks of a row that a thread takes, kLanesPerRow apart.
  static constexpr int kChunkSteps = Tile::kChunks / kLanesPerRow;
  static constexpr int kRowsPerPass = kThreads / kLanesPerRow;
  static constexpr int kPasses = ceil_div(Tile::kRows, kRowsPerPass);
  static_assert(kRowsPerPass % 8 == 0, "a thread's rows must share one swizzle phase");

  __device__ __forceinline__ ThreadShare() {
    constexpr u32 kLanes = kLanesPerRow;
    row_ = static_cast<int>(threadIdx.x / kLanes);
    target_ = Tile::offset(row_, chunk());
  }

  /// Of the tile, in this pass; may be past its end in the last.
  __device__ __forceinline__ int row(int pass) const { return row_ + pass * kRowsPerPass; }

  /// The thread's first chunk of each row.
  __device__ __forceinline__ static int chunk() {
    constexpr u32 kLanes = kLanesPerRow;
    return static_cast<int>(threadIdx.x % kLanes);
  }

  /// Issues the copies of this pass; `source`: chunk() of its row. Zeros if not `valid`.
  __device__ __forceinline__ void copy(u32 tile, int pass, const char* source, bool valid) const {
    if (Tile::kRows % kRowsPerPass != 0 && row(pass) >= Tile::kRows) return;
#pragma unroll
    for (int step = 0; step < kChunkSteps; ++step) {
      // A step is a plain offset from one group of chunks that permute to the next, within a group
      // it is an XOR.
      const u32 offset = step * kLanesPerRow * 16, within = offset % Tile::kSwizzleBytes;
      cp_async_16(
          tile + (target_ ^ within) + pass * kRowsPerPass * Tile::kRowBytes + offset - within,
          source + step * kLanesPerRow * 16, valid);
    }
  }

 private:
  int row_;     ///< of a tile, in the first pass
  u32 target_;  ///< byte offset of the first chunk in a tile
};

}  // namespace lacuna
