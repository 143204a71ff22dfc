// Elements of a table that lie on a line along the keys of a row
// (compiler/expr/parts/table_line.hpp). They depend on no product, so they are read while products
// are under way: from one address of each row at constant distances, two of neighbouring keys
// together where they lie next to each other. Where the line leaves the table, and where it is not
// dense, each index is clamped.
#pragma once

#include "arch/warp.cuh"
#include "args/expr.cuh"
#include "base/ints.cuh"

namespace lacuna {

/// Of a lane's scores with kBlocks blocks of 8 keys.
template <int kBlocks, bool kExist = true>
struct LineElements {
  float at[kBlocks][4];
  __device__ __forceinline__ float of_score(int n, int i) const { return at[n][i]; }
};
template <int kBlocks>
struct LineElements<kBlocks, false> {
  __device__ __forceinline__ float of_score(int, int) const { return 0.0f; }
};

/// Does a line of elements that follow each other in memory stay in its table for `last` elements?
__device__ __forceinline__ bool is_inside(const TableLine& line, int last) {
  return line.stride == 1 && line.index + smaller(last, 0) >= 0 &&
         line.index + larger(last, 0) < line.extent;
}

/// Two elements at once, from a multiple of 8 bytes on.
template <int kBlocks>
__device__ __forceinline__ void read_pairs(LineElements<kBlocks>& elements, int r,
                                           const float* first) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
    const float2 pair = *reinterpret_cast<const float2*>(first + n * 8);
    elements.at[n][2 * r] = pair.x;
    elements.at[n][2 * r + 1] = pair.y;
  }
}

/// k: the lane's first key.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ LineElements<kBlocks> line_elements(const Args& args, const Lane& lane,
                                                               int k, int b) {
  constexpr int kAlongK = Hooks::ScoreRow::kLineAlongK;
  constexpr int kLast = (8 * kBlocks - 7) * kAlongK;
  const TableLine lines[2] = {Hooks::score_line(args, lane.q(0), k, lane.h(0), b),
                              Hooks::score_line(args, lane.q(1), k, lane.h(1), b)};
  const float* const first[2] = {lines[0].first + lines[0].index, lines[1].first + lines[1].index};
  LineElements<kBlocks> elements;
  if (__any_sync(kAllLanes, !is_inside(lines[0], kLast) || !is_inside(lines[1], kLast))) {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        elements.at[n][i] = lines[i / 2].clamped((n * 8 + i % 2) * kAlongK);
    }
    return elements;
  }
  if constexpr (kAlongK == 1) {
    const auto misplaced = (reinterpret_cast<unsigned long long>(first[0]) |
                            reinterpret_cast<unsigned long long>(first[1])) %
                           8;
    if (!__any_sync(kAllLanes, misplaced != 0)) {
      read_pairs(elements, 0, first[0]);
      read_pairs(elements, 1, first[1]);
      return elements;
    }
  }
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) elements.at[n][i] = first[i / 2][(n * 8 + i % 2) * kAlongK];
  }
  return elements;
}

}  // namespace lacuna
