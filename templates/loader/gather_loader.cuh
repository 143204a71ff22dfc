// Loads tiles of rows that lie anywhere in a head, in the order of a list of row numbers, with
// cp.async: each row's chunks from its own address. The whole block takes part; slots past the end
// of the list become zeros and are not read. Rows must begin at multiples of 16 bytes.
#pragma once

#include "base/pin.cuh"
#include "loader/thread_share.cuh"

namespace lacuna {

template <class Tile, int kThreads>
class GatherLoader {
  using Share = ThreadShare<Tile, kThreads>;

 public:
  /// `head`: first row of the head; `row_stride` in elements; `rows`: the list, of `count` numbers.
  template <class Element>
  __device__ __forceinline__ GatherLoader(const Element* head, long long row_stride,
                                          const int* rows, int count)
      : row_bytes_(row_stride * static_cast<int>(sizeof(Element))), rows_(rows), count_(count) {
    source_ = reinterpret_cast<const char*>(head) + Share::chunk() * 16;
    pin(source_);
  }

  /// Issues the copies of the tile of the list's slots from `first` on; the caller commits them.
  __device__ __forceinline__ void load(u32 tile, int first) const {
    int rows[Share::kPasses];
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {  // all are under way together
      const int slot = first + share_.row(pass);
      rows[pass] = slot < count_ ? rows_[slot] : 0;
    }
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {
      share_.copy(tile, pass, source_ + rows[pass] * row_bytes_, first + share_.row(pass) < count_);
    }
  }

 private:
  const char* source_;  ///< this thread's chunk of the head's first row
  long long row_bytes_;
  const int* rows_;
  int count_;
  Share share_;
};

}  // namespace lacuna
