// Elements of a table whose indices are those of the row plus those of the key
// (compiler/expr/parts/index_parts.hpp). The lanes of a warp work out in turn how far the elements
// of its keys lie from the place of a row, and hand that on, so that a score adds it to an address
// and loads.
#pragma once

#include "arch/redux.cuh"
#include "args/expr.cuh"
#include "attend/shared_parts.cuh"

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
    const KeyIndices<kDims> keys = place_keys<kDims>(args, lane, k, b);
    is_inside_ = table.data != nullptr;
    long long furthest = 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) rows_[r] = table.data;
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      rows_[0] += first.at[d] * table.stride[d];
      rows_[1] += second.at[d] * table.stride[d];
      const long long least = smaller(first.at[d], second.at[d]);
      const long long most = larger(first.at[d], second.at[d]);
      is_inside_ =
          is_inside_ && least + keys.least[d] >= 0 && most + keys.most[d] < table.extent[d];
      furthest += larger(abs(keys.least[d]), abs(keys.most[d])) * table.stride[d];
    }
    is_inside_ = is_inside_ && furthest <= 0x7fffffff;  // as far as distances reach
  }

  /// Do all of them lie in the table?
  __device__ __forceinline__ bool are_inside() const { return is_inside_; }
  __device__ __forceinline__ bool are_paired() const { return true; }

  template <bool kArePaired>
  __device__ __forceinline__ void read(float (&block)[4], int n) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int from = lane_index() % 4 * 2 + n % kKeyBlocks * 8 + i;
      const int distance = __shfl_sync(kAllLanes, distances_[n / kKeyBlocks], from);
      block[i] = rows_[0][distance];
      block[2 + i] = rows_[1][distance];
    }
  }

 private:
  /// The least and the most that any key of the warp makes of each index.
  template <int kDims>
  struct KeyIndices {
    int least[kDims], most[kDims];
  };

  template <int kDims, class Args, class Lane>
  __device__ __forceinline__ KeyIndices<kDims> place_keys(const Args& args, const Lane& lane, int k,
                                                          int b) {
    const auto& table = Hooks::element_table(Number{}, args);
    const int first_key = k - lane_index() % 4 * 2 + lane_index();
    KeyIndices<kDims> keys;
#pragma unroll
    for (int n = 0; n < ceil_div(kBlocks, kKeyBlocks); ++n) {
      const auto indices =
          Hooks::element_key(Number{}, args, first_key + n * 8 * kKeyBlocks, lane.h(0), b);
      unsigned distance = 0;
#pragma unroll
      for (int d = 0; d < kDims; ++d) {
        keys.least[d] = n == 0 ? indices.at[d] : smaller(keys.least[d], indices.at[d]);
        keys.most[d] = n == 0 ? indices.at[d] : larger(keys.most[d], indices.at[d]);
        distance += static_cast<unsigned>(indices.at[d]) * static_cast<unsigned>(table.stride[d]);
      }
      distances_[n] = static_cast<int>(distance);
    }
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      keys.least[d] = ~max_over_lanes(~keys.least[d]);
      keys.most[d] = max_over_lanes(keys.most[d]);
    }
    return keys;
  }

  const float* rows_[2];                          ///< the places of the lane's rows
  int distances_[ceil_div(kBlocks, kKeyBlocks)];  ///< of this lane's share of the keys
  bool is_inside_;
};

}  // namespace lacuna
