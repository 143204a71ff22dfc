// The addresses of a work tile's keys in global memory, one by one, for the few steps whose scores
// are computed a second time.
#pragma once

#include "pipeline/kv_element.cuh"
#include "pipeline/sequence_tile.cuh"
#include "tile/key_pairs.cuh"

namespace lacuna {

/// Rows of one head.
template <class Element>
struct KeyRows {
  const Element* first;
  long long stride;

  __device__ __forceinline__ const Element* at(int key) const { return first + key * stride; }
};
struct CodedKeyRows {
  KeyRows<unsigned char> codes;
  const float* scale;  ///< of all of them; null: 1

  __device__ __forceinline__ CodedKey at(int key) const {
    return {codes.at(key), scale == nullptr ? 1.0f : *scale};
  }
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
struct CodedPagedKeyRows {
  PagedKeyRows<unsigned char> codes;
  const float* scales;  ///< of page 0; null: all are 1
  long long scale_stride;

  __device__ __forceinline__ CodedKey at(int key) const {
    const int page = codes.pages[key / codes.page_tokens];
    return {codes.at(key), scales == nullptr ? 1.0f : scales[page * scale_stride]};
  }
};

/// As keys lie in memory: of `Element`s.
template <class Config, class Element, class Args, class Row>
__device__ __forceinline__ auto stored_key_rows(const Args& args, const Row& row) {
  const TensorArg& k = args.attend.k;
  const Element* head =
      static_cast<const Element*>(k.data) + row.h / args.attend.heads_per_kv * k.stride_h;
  if constexpr (!has_sequence_tiles<Config>()) {
    return KeyRows<Element>{head + row.b * k.stride_b, k.stride_n};
  } else if constexpr (makes_keys<Config>()) {
    const long long piece = row.b * args.sequences.workspace_bytes;
    return KeyRows<Element>{head + piece / static_cast<int>(sizeof(Element)), k.stride_n};
  } else if constexpr (attends_to_pages<Config>()) {
    return PagedKeyRows<Element>{head, k.stride_n, k.stride_b,
                                 args.sequences.pages + row.b * args.sequences.pages_stride,
                                 args.sequences.page_tokens};
  } else {
    return KeyRows<Element>{head + row.k_begin * k.stride_n, k.stride_n};
  }
}

template <class Config, class Args, class Row>
__device__ __forceinline__ auto key_rows(const Args& args, const Row& row) {
  using Element = typename Config::Element;
  if constexpr (!has_e4m3_rows<Config>()) {
    return stored_key_rows<Config, Element>(args, row);
  } else {
    const auto codes = stored_key_rows<Config, unsigned char>(args, row);
    const auto& from = args.kv_scales;
    const float* scales = from.keys;
    if (scales != nullptr) scales += row.h / args.attend.heads_per_kv * from.keys_stride_h;
    if constexpr (attends_to_pages<Config>()) {
      return CodedPagedKeyRows{codes, scales, from.keys_stride_b};
    } else {
      if (scales != nullptr) scales += row.b * from.keys_stride_b;
      return CodedKeyRows{codes, scales};
    }
  }
}

}  // namespace lacuna
