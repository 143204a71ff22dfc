// The addresses of a work tile's keys in global memory, one by one, for the few steps whose scores
// are computed a second time.
#pragma once

#include "pipeline/sequence_tile.cuh"

namespace lacuna {

/// Rows of one head.
template <class Element>
struct KeyRows {
  const Element* first;
  long long stride;

  __device__ __forceinline__ const Element* at(int key) const { return first + key * stride; }
};

/// Of a sequence in pages.
template <class Element>
struct PagedKeyRows {
  const Element* first;  ///< of page 0
  long long stride, page_stride;
  const int* pages;
  int page_tokens;

  __device__ __forceinline__ const Element* at(int key) const {
    const int place = key / page_tokens;
    return first + pages[place] * page_stride + (key - place * page_tokens) * stride;
  }
};

template <class Config, class Args, class Row>
__device__ __forceinline__ auto key_rows(const Args& args, const Row& row) {
  using Element = typename Config::Element;
  const TensorArg& k = args.attend.k;
  const Element* head =
      static_cast<const Element*>(k.data) + row.h / args.attend.heads_per_kv * k.stride_h;
  if constexpr (!packs_heads<Config>()) {
    return KeyRows<Element>{head + row.b * k.stride_b, k.stride_n};
  } else if constexpr (batch_layout<Config>() == BatchLayout::kPages) {
    return PagedKeyRows<Element>{head, k.stride_n, k.stride_b,
                                 args.sequences.pages + row.b * args.sequences.pages_stride,
                                 args.sequences.page_tokens};
  } else {
    return KeyRows<Element>{head + row.k_begin * k.stride_n, k.stride_n};
  }
}

}  // namespace lacuna
