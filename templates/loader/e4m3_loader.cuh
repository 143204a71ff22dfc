// Loads tiles of rows of e4m3 and makes 16-bit rows of them: cp.async brings the codes, and once
// they have landed each thread converts those that it asked for itself, so that no barrier is
// needed in between. A number is its code times the scale of its row, rounded to the element type.
#pragma once

#include "loader/thread_share.cuh"
#include "quantise/e4m3_rows.cuh"

namespace lacuna {

/// The scales of the rows of one head.
struct RowScales {
  const float* scales;    ///< null: 1
  const int* pages;       ///< of the rows; null: all have the first scale
  long long page_stride;  ///< from the scale of a page to that of the next
  int page_shift;         ///< 2^page_shift rows make a page
  int rows;               ///< that there are
  const int* gathered;    ///< which rows; null: all, in order

  __device__ __forceinline__ float of(int row) const {
    if (scales == nullptr) return 1.0f;
    if (pages == nullptr) return *scales;
    if (row >= rows) return 1.0f;
    if (gathered != nullptr) row = gathered[row];
    return scales[pages[row >> page_shift] * page_stride];
  }
};

/// `Rows`: a loader of tiles of bytes, half as wide as `Tile`.
template <template <class, int> class RowLoader, class Element, class Tile, int kThreads>
class E4m3Loader {
 public:
  using Codes = ByteTile<Tile::kRows, Tile::kRowBytes / 2>;
  using Rows = RowLoader<Codes, kThreads>;

  __device__ __forceinline__ E4m3Loader(const Rows& rows, const RowScales& scales)
      : rows_(rows), scales_(scales) {}

  /// Issues the copies of codes into `codes`; the caller commits them.
  __device__ __forceinline__ void load(u32 codes, int first) const { rows_.load(codes, first); }

  /// `codes`: where this thread's copies of the tile whose first row is `first` have landed.
  __device__ __forceinline__ void convert(const unsigned char* codes, unsigned char* tile,
                                          int first) const {
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {
      const int row = share_.row(pass);
      if (Tile::kRows % Share::kRowsPerPass != 0 && row >= Tile::kRows) return;
      const float scale = scales_.of(first + row);
#pragma unroll
      for (int step = 0; step < Share::kChunkSteps; ++step) {
        const int chunk = Share::chunk() + step * Share::kLanesPerRow;
        const uint4 from = *reinterpret_cast<const uint4*>(codes + Codes::offset(row, chunk));
        *reinterpret_cast<uint4*>(tile + Tile::offset(row, 2 * chunk)) =
            numbers_of_eight<Element>(from.x, from.y, scale);
        *reinterpret_cast<uint4*>(tile + Tile::offset(row, 2 * chunk + 1)) =
            numbers_of_eight<Element>(from.z, from.w, scale);
      }
    }
  }

 private:
  using Share = ThreadShare<Codes, kThreads>;

  Rows rows_;
  RowScales scales_;
  Share share_;
};

}  // namespace lacuna
