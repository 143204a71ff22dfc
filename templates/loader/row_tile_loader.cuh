// Loads tiles of consecutive rows of one head, or of consecutive columns, with cp.async. The whole
// block takes part; rows past the end of the tensor become zeros and are not read. Rows must begin
// at multiples of 16 bytes.
#pragma once

#include "base/pin.cuh"
#include "loader/thread_share.cuh"

namespace lacuna {

template <class Tile, int kThreads>
class RowTileLoader {
  using Share = ThreadShare<Tile, kThreads>;

 public:
  /// `head`: first row of the head; `row_stride` in elements; `rows`: how many the head has.
  template <class Element>
  __device__ __forceinline__ RowTileLoader(const Element* head, long long row_stride, int rows)
      : row_bytes_(row_stride * static_cast<int>(sizeof(Element))), rows_(rows) {
    source_ =
        reinterpret_cast<const char*>(head) + share_.row(0) * row_bytes_ + Share::chunk() * 16;
    pin(source_);
  }

  /// Issues the copies of the tile whose first row is `first`; the caller commits them.
  __device__ __forceinline__ void load(u32 tile, int first) const {
    copy(tile, source_ + first * row_bytes_, first, rows_);
  }

  /// The same of rows that lie so many bytes further, of which there are `rows`: several such sets
  /// of rows share one loader, which keeps its addresses.
  __device__ __forceinline__ void load_moved(u32 tile, int first, long long bytes, int rows) const {
    copy(tile, source_ + (first * row_bytes_ + bytes), first, rows);
  }

  /// The same for the tile of the head's first rows that begins at byte `first` of each.
  __device__ __forceinline__ void load_columns(u32 tile, int first) const {
    copy(tile, source_ + first, 0, rows_);
  }

 private:
  __device__ __forceinline__ void copy(u32 tile, const char* source, int first, int rows) const {
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {
      share_.copy(tile, pass, source, first + share_.row(pass) < rows);
      source += Share::kRowsPerPass * row_bytes_;
    }
  }

  const char* source_;  ///< this thread's chunk of the head's first rows
  long long row_bytes_;
  int rows_;
  Share share_;
};

}  // namespace lacuna
