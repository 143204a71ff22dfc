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
  return {sequences.pages, tensor.stride_b, tensor.stride_n, page_shift_of(sequences)};
}

/// A thread's chunk of a row, wherever its page lies.
class PageSource {
 public:
  /// `head`: the head's first row of page 0; `chunk`: of 16 bytes.
  template <class Element>
  __device__ __forceinline__ PageSource(const Element* head, const PagedRows& paged, int chunk)
      : pages_(paged.pages),
        page_bytes_(paged.page_stride * static_cast<int>(sizeof(Element))),
        row_bytes_(paged.row_stride * static_cast<int>(sizeof(Element))),
        page_shift_(paged.page_shift) {
    first_ = reinterpret_cast<const char*>(head) + chunk * 16;
    pin(first_);
  }

  /// The page of a row; any, without a look at the table, of one that does not exist.
  __device__ __forceinline__ int page_of(int row, bool exists) const {
    return exists ? pages_[row >> page_shift_] : 0;
  }
  __device__ __forceinline__ const char* chunk_of(int page, int row) const {
    const int row_of_page = row & ((1 << page_shift_) - 1);
    return first_ + page * page_bytes_ + row_of_page * row_bytes_;
  }

 private:
  const int* pages_;
  const char* first_;  ///< this thread's chunk of the head's first row of page 0
  long long page_bytes_, row_bytes_;
  int page_shift_;
};

template <class Tile, int kThreads>
class PageLoader {
  using Share = ThreadShare<Tile, kThreads>;

 public:
  /// `head`: the head's first row of page 0; `rows`: how many the sequence has. Of every `step`-th
  /// row, from `shift` on: then tiles are of those.
  template <class Element>
  __device__ __forceinline__ PageLoader(const Element* head, const PagedRows& paged, int rows,
                                        int step = 1, int shift = 0)
      : source_(head, paged, Share::chunk()), rows_(rows), step_(step), shift_(shift) {}

  /// Starts copying rows first, first + 1, ... (counted from the sequence's first).
  __device__ __forceinline__ void load(u32 tile, int first) const {
    int pages[Share::kPasses];
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {  // all are under way together
      const int row = row_of(first, pass);
      pages[pass] = source_.page_of(row, row < rows_);
    }
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass) {
      const int row = row_of(first, pass);
      share_.copy(tile, pass, source_.chunk_of(pages[pass], row), row < rows_);
    }
  }

 private:
  __device__ __forceinline__ int row_of(int first, int pass) const {
    return (first + share_.row(pass)) * step_ + shift_;
  }

  PageSource source_;
  int rows_, step_, shift_;
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
      : source_(head, paged, Share::chunk()), rows_(rows), count_(count) {}

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
      sources[pass] = source_.chunk_of(source_.page_of(rows[pass], exists), rows[pass]);
    }
#pragma unroll
    for (int pass = 0; pass < Share::kPasses; ++pass)
      share_.copy(tile, pass, sources[pass], first + share_.row(pass) < count_);
  }

 private:
  PageSource source_;
  const int* rows_;
  int count_;
  Share share_;
};

}  // namespace lacuna
