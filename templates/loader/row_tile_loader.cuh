// Loads tiles of consecutive rows of one head with cp.async. The whole block takes part; rows past
// the end of the tensor become zeros and are not read. Rows must begin at multiples of 16 bytes.
#pragma once

#include "arch/cp_async.cuh"
#include "base/pin.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Tile, int kThreads>
class RowTileLoader {
  // Up to 8 neighbouring lanes share a row, so that a warp reads whole 64- or 128-byte segments.
  static constexpr int kLanesPerRow = smaller(8, power_of_two_factor(Tile::kChunks));
  static constexpr int kRowsPerPass = kThreads / kLanesPerRow;
  static constexpr int kPasses = ceil_div(Tile::kRows, kRowsPerPass);
  static constexpr int kChunkSteps = Tile::kChunks / kLanesPerRow;
  static_assert(kRowsPerPass % 8 == 0, "a thread's rows must share one swizzle phase");

 public:
  /// `head`: first row of the head; `row_stride` in elements; `rows`: how many the head has.
  template <class Element>
  __device__ __forceinline__ RowTileLoader(const Element* head, long long row_stride, int rows)
      : row_bytes_(row_stride * 2), rows_(rows) {
    constexpr u32 kLanes = kLanesPerRow;
    row_ = static_cast<int>(threadIdx.x / kLanes);
    const int chunk = static_cast<int>(threadIdx.x % kLanes);
    source_ = reinterpret_cast<const char*>(head) + row_ * row_bytes_ + chunk * 16;
    pin(source_);
    target_ = Tile::offset(row_, chunk);
  }

  /// Issues the copies of the tile whose first row is `first`; the caller commits them.
  __device__ __forceinline__ void load(u32 tile, int first) const {
    const char* source = source_ + first * row_bytes_;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = row_ + pass * kRowsPerPass;
      if (Tile::kRows % kRowsPerPass != 0 && row >= Tile::kRows) break;
      const bool valid = first + row < rows_;
#pragma unroll
      for (int step = 0; step < kChunkSteps; ++step) {
        // The swizzle permutes within kLanesPerRow chunks, so a step is a plain offset.
        cp_async_16(
            tile + target_ + pass * kRowsPerPass * Tile::kRowBytes + step * kLanesPerRow * 16,
            source + step * kLanesPerRow * 16, valid);
      }
      source += kRowsPerPass * row_bytes_;
    }
  }

 private:
  const char* source_;  ///< this thread's chunk of the head's first rows
  long long row_bytes_;
  int rows_;
  int row_;     ///< of a tile, in the first pass
  u32 target_;  ///< byte offset of that chunk in a tile
};

}  // namespace lacuna
