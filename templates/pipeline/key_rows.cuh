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

/// The first row of a head of keys or values, in a batch entry or in a sequence. Its other rows
/// follow at one stride; keys in pages do not, and are found by PagedKeyRows.
template <class Config, class Element, class Args, class Row>
__device__ __forceinline__ const Element* first_row_of_head(const Args& args, const TensorArg& x,
                                                            const Row& row, int head) {
  const auto* data = static_cast<const Element*>(x.data) + head * x.stride_h;
  if constexpr (!has_sequence_tiles<Config>()) {
    return data + row.b * x.stride_b;
  } else if constexpr (makes_keys<Config>()) {
    move_by(data, row.b * args.sequences.workspace_bytes);
    return data;
  } else {
    return data + row.k_begin * x.stride_n;
  }
}

/// As keys lie in memory: of `Element`s.
template <class Config, class Element, class Args, class Row>
__device__ __forceinline__ auto stored_key_rows(const Args& args, const Row& row) {
  const TensorArg& k = args.attend.k;
  const int head = row.h / args.attend.heads_per_kv;
  if constexpr (has_sequence_tiles<Config>() && attends_to_pages<Config>()) {
    return PagedKeyRows<Element>{
        static_cast<const Element*>(k.data) + head * k.stride_h, k.stride_n, k.stride_b,
        args.sequences.pages + row.b * args.sequences.pages_stride, args.sequences.page_tokens};
  } else {
    return KeyRows<Element>{first_row_of_head<Config, Element>(args, k, row, head), k.stride_n};
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
