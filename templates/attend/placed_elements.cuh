// Elements of a table whose indices are those of the row plus those of the key
// (compiler/expr/parts/index_parts.hpp). The lanes of a warp work out in turn how far the elements
// of its keys lie from the place of a row, and hand that on, so that a score adds it to an address
// and loads.
#pragma once

#include "arch/redux.cuh"
#include "args/expr.cuh"
#include "attend/shared_parts.cuh"
#include "base/chosen.cuh"

namespace lacuna {

/// Those of a lane's scores with kBlocks blocks of 8 keys, of element kNumber of a formula.
template <class Hooks, int kNumber, int kBlocks>
class PlacedElements {
  using Number = Constant<kNumber>;

 public:
  static constexpr bool kHasPairs = false;

  /// k: the lane's first key; those behind the last token count as well.
  template <class Args, class Lane>
  __device__ __forceinline__ PlacedElements(const Args& args, const Lane& lane, int k, int b) {
    const auto& table = Hooks::element_table(Number{}, args);
    const auto first = Hooks::element_row(Number{}, args, lane.q(0), lane.h(0), b);
    const auto second = Hooks::element_row(Number{}, args, lane.q(1), lane.h(1), b);
    constexpr int kDims = sizeof(first) / sizeof(int);
    int indices[kShares][kDims];
#pragma unroll
    for (int n = 0; n < kShares; ++n) {
      const int key = k - lane_index() % 4 * 2 + lane_index() + n * 8 * kKeyBlocks;
      const auto of_key = Hooks::element_key(Number{}, args, key, lane.h(0), b);
#pragma unroll
      for (int d = 0; d < kDims; ++d) indices[n][d] = of_key.at[d];
    }
    is_inside_ = table.data != nullptr;
    long long furthest = 0;
    rows_[0] = rows_[1] = table.data;
#pragma unroll
    for (int n = 0; n < kShares; ++n) distances_[n] = 0;
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      const KeySpan span = span_of_keys(indices, d);
      const u32 extent = static_cast<u32>(table.extent[d]);
      // Indices wrap: they are in order where those of the least and of the most are no further
      // apart than the table is long.
      is_inside_ = is_inside_ && span.length < extent && table.stride[d] >= 0;
      furthest += span.length * table.stride[d];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const u32 least = static_cast<u32>(r == 0 ? first.at[d] : second.at[d]) + span.least;
        is_inside_ = is_inside_ && least < extent && least + span.length < extent;
        rows_[r] += static_cast<int>(least) * table.stride[d];
      }
#pragma unroll
      for (int n = 0; n < kShares; ++n)
        distances_[n] += (static_cast<u32>(indices[n][d]) - span.least) *
                         static_cast<u32>(table.stride[d]) * kBytes;
    }
    is_inside_ = is_inside_ && furthest <= 0xffffffffu / kBytes;  // as far as distances reach
  }

  /// Do all of them lie in the table?
  __device__ __forceinline__ bool are_inside() const { return is_inside_; }
  __device__ __forceinline__ bool are_paired() const { return true; }

  template <bool kArePaired>
  __device__ __forceinline__ void read(float (&block)[4], int n) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int from = lane_index() % 4 * 2 + n % kKeyBlocks * 8 + i;
      const u32 distance = __shfl_sync(kAllLanes, chosen(distances_, n / kKeyBlocks), from);
#pragma unroll
      for (int r = 0; r < 2; ++r)
        block[2 * r + i] =
            *reinterpret_cast<const float*>(reinterpret_cast<const char*>(rows_[r]) + distance);
    }
  }

 private:
  static constexpr u32 kBytes = sizeof(float);
  static constexpr int kShares = ceil_div(kBlocks, kKeyBlocks);  ///< keys of a lane

  /// What the keys of a warp make of an index: from the least on.
  struct KeySpan {
    u32 least, length;
  };
  template <int kDims>
  __device__ __forceinline__ static KeySpan span_of_keys(const int (&indices)[kShares][kDims],
                                                         int d) {
    int least = indices[0][d], most = indices[0][d];
#pragma unroll
    for (int n = 1; n < kShares; ++n) {
      least = smaller(least, indices[n][d]);
      most = larger(most, indices[n][d]);
    }
    least = ~max_over_lanes(~least);
    return {static_cast<u32>(least),
            static_cast<u32>(max_over_lanes(most)) - static_cast<u32>(least)};
  }

  const float* rows_[2];    ///< where the elements of the least indices of the keys lie
  u32 distances_[kShares];  ///< from there, in bytes, of this lane's share of the keys
  bool is_inside_;
};

}  // namespace lacuna
