// Rows of keys or values as they lie in memory, one by one: 16-bit elements, or codes of e4m3 of
// which whoever reads makes them; in order, or in pages.
#pragma once

#include "arch/pack.cuh"
#include "loader/page_loader.cuh"
#include "loader/token_rows.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/kv_element.cuh"
#include "quantise/e4m3_rows.cuh"

namespace lacuna {

/// From some element of a row on; `moved` goes on by elements, of the row or of those behind it.
template <class T>
struct NumberRow {
  using Element = T;
  const T* first = nullptr;

  __device__ __forceinline__ NumberRow moved(long long elements) const {
    return {first + elements};
  }
  __device__ __forceinline__ uint4 chunk() const { return *reinterpret_cast<const uint4*>(first); }
  __device__ __forceinline__ u32 pair() const { return *reinterpret_cast<const u32*>(first); }
  __device__ __forceinline__ float number() const {
    return unpack_low<T>(*reinterpret_cast<const unsigned short*>(first));
  }
};

/// The same of codes. All of them have one scale: a row, or those of a head.
template <class T>
struct CodeRow {
  using Element = T;
  const unsigned char* first = nullptr;
  float scale = 1.0f;

  __device__ __forceinline__ CodeRow moved(long long elements) const {
    return {first + elements, scale};
  }
  __device__ __forceinline__ uint4 chunk() const {
    const uint2 codes = *reinterpret_cast<const uint2*>(first);
    return numbers_of_eight<T>(codes.x, codes.y, scale);
  }
  __device__ __forceinline__ u32 pair() const {
    return numbers_of_two<T>(*reinterpret_cast<const unsigned short*>(first), scale);
  }
  __device__ __forceinline__ float number() const {
    return unpack_low<T>(numbers_of_two<T>(*first, scale));
  }
};

template <class Config>
constexpr auto stored_row_type() {
  using Element = typename Config::Element;
  if constexpr (has_e4m3_rows<Config>()) {
    return CodeRow<Element>{};
  } else {
    return NumberRow<Element>{};
  }
}
template <class Config>
using StoredRow = decltype(stored_row_type<Config>());

enum class KvTensor { kKeys, kValues };

/// Of the codes of a head; `entry`: of the batch, or the page.
template <KvTensor kTensor, class Args>
__device__ __forceinline__ float code_scale(const Args& args, int entry, int h) {
  constexpr bool kIsKey = kTensor == KvTensor::kKeys;
  const auto& from = args.kv_scales;
  const float* scales = kIsKey ? from.keys : from.values;
  if (scales == nullptr) return 1.0f;
  return scales[entry * (kIsKey ? from.keys_stride_b : from.values_stride_b) +
                h * (kIsKey ? from.keys_stride_h : from.values_stride_h)];
}

/// From an element of a token on. Rows of the workspace never lie in pages.
template <class Config, KvTensor kTensor, bool kInPages = attends_to_pages<Config>(), class Args>
__device__ __forceinline__ StoredRow<Config> stored_row(const Args& args, const TensorArg& x, int b,
                                                        int h, int token, int column) {
  int entry = b, row = token;
  if constexpr (kInPages) {
    const PagedRows paged = paged_rows(x, args.sequences);
    entry = paged.pages[token >> paged.page_shift];
    row = token & ((1 << paged.page_shift) - 1);
  }
  StoredRow<Config> stored{element_of<const KvElement<Config>>(x, entry, h, row, column)};
  if constexpr (has_e4m3_rows<Config>()) stored.scale = code_scale<kTensor>(args, entry, h);
  return stored;
}

/// The same of a query.
template <class Config>
__device__ __forceinline__ NumberRow<typename Config::Element> query_row(const TensorArg& x, int b,
                                                                         int h, int token,
                                                                         int column) {
  return {element_of<const typename Config::Element>(x, b, h, token, column)};
}

}  // namespace lacuna
