// Loads tiles of consecutive rows of one head that lie in pages, with cp.async: the rows of a page
// are neighbours, and a table says which page comes next. The whole block takes part; rows past the
// end become zeros and are not read. Rows must begin at multiples of 16 bytes.
#pragma once

#include "args/attend_args.cuh"
#include "args/sequence_args.cuh"
#include "base/pin.cuh"
#include "loader/thread_share.cuh"

namespace lacuna {

/// The pages of a sequence, for one head of a tensor [pages, heads_kv, page_tokens, d].
struct PagedRows {
  const int* pages;
  long long page_stride, row_stride;  ///< in elements
  int page_shift;                     ///< 2^page_shift tokens make a page
};

/// Of the sequence whose arguments these are.
__device__ __forceinline__ PagedRows paged_rows(const TensorArg& tensor,
                                                const SequenceArgs& sequences) {
  return {sequences.pages, tensor.stride_b, tensor.stride_n, 31 - __clz(sequences.page_tokens)};
}

template <class Tile, int kThreads>
class PageLoader {
  using Share = ThreadShare<Tile, kThreads>;

 public:
  /// `head`: the head's first row of page 0; `rows`: how many the sequence has. Of every `step`-th
  /// row, from `shift` on: then tiles are of those.
  template <class Element>
  __device__ __forceinline__ PageLoader(const Element* head, const PagedRows& paged, int rows,
                                        int step = 1, int shift = 0)
      : pages_(paged.pages),
        page_bytes_(paged.page_stride * static_cast<int>(sizeof(Element))),
        row_bytes_(paged.row_stride * static_cast<int>(sizeof(Element))),
        page_shift_(paged.page_shift),
        rows_(rows),
        step_(step),
        shift_(shift) {
    source_ = reinterpret_cast<const char*>(head) + Share::chunk() * 16;
    pin(source_);
  }

  /// Issues the copies of the tile whose first row is `first`; the caller commits them.
  __device__ __forceinline__ void load(u32 tile, int first) const {
    int pages[Share::kPasses];
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {  // all are under way together
      const int row = row_of(first, pass);
      pages[pass] = row < rows_ ? pages_[row >> page_shift_] : 0;
    }
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {
      const int row = row_of(first, pass);
      const int row_of_page = row & ((1 << page_shift_) - 1);
      share_.copy(tile, pass, source_ + pages[pass] * page_bytes_ + row_of_page * row_bytes_,
                  row < rows_);
    }
  }

 private:
  __device__ __forceinline__ int row_of(int first, int pass) const {
    return (first + share_.row(pass)) * step_ + shift_;
  }

  const int* pages_;
  const char* source_;  ///< this thread's chunk of the head's first row of page 0
  long long page_bytes_, row_bytes_;
  int page_shift_, rows_;
  int step_, shift_;
  Share share_;
};

/// The same in the order of a list of row numbers, as GatherLoader (loader/gather_loader.cuh).
template <class Tile, int kThreads>
class PageGatherLoader {
  using Share = ThreadShare<Tile, kThreads>;

 public:
  template <class Element>
  __device__ __forceinline__ PageGatherLoader(const Element* head, const PagedRows& paged,
                                              const int* rows, int count)
      : pages_(paged.pages),
        rows_(rows),
        page_bytes_(paged.page_stride * static_cast<int>(sizeof(Element))),
        row_bytes_(paged.row_stride * static_cast<int>(sizeof(Element))),
        page_shift_(paged.page_shift),
        count_(count) {
    source_ = reinterpret_cast<const char*>(head) + Share::chunk() * 16;
    pin(source_);
  }

  __device__ __forceinline__ void load(u32 tile, int first) const {
    int rows[Share::kPasses];
    const char* sources[Share::kPasses];
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {  // all are under way together
      const int slot = first + share_.row(pass);
      rows[pass] = slot < count_ ? rows_[slot] : 0;
    }
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {
      const bool exists = first + share_.row(pass) < count_;
      const int page = exists ? pages_[rows[pass] >> page_shift_] : 0;
      const int row_of_page = rows[pass] & ((1 << page_shift_) - 1);
      sources[pass] = source_ + page * page_bytes_ + row_of_page * row_bytes_;
    }
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass)
      share_.copy(tile, pass, sources[pass], first + share_.row(pass) < count_);
  }

 private:
  const int *pages_, *rows_;
  const char* source_;  ///< this thread's chunk of the head's first row of page 0
  long long page_bytes_, row_bytes_;
  int page_shift_, count_;
  Share share_;
};

}  // namespace lacuna
