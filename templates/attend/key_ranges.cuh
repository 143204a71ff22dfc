// Masks that bound keys (compiler/expr/key_ranges.hpp) on a lane's accumulators: a comparison or
// two with a constant for each score, whatever the bounds are made of.
#pragma once

#include "base/math.cuh"
#include "pipeline/lane_rows.cuh"

namespace lacuna {

/// Scores of a lane's two queries with kBlocks blocks of 8 keys, of which a lane has keys k + 8 * n
/// and k + 8 * n + 1: those of keys that a row does not see, or that do not exist, become -inf.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ void apply_key_ranges(const Args& args, float (*scores)[4],
                                                 const Lane& lane, int k, int b) {
  using Row = typename Hooks::MaskRow;
  const Row rows[2] = {Hooks::mask_row(args, lane.q(0), lane.h(0), b),
                       Hooks::mask_row(args, lane.q(1), lane.h(1), b)};
  int first[2][Row::kRanges], last[2][Row::kRanges];  // counted from the lane's first key
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int n = 0; n < Row::kRanges; ++n) {
      first[r][n] = rows[r].first[n] - k;
      last[r][n] = min(rows[r].last[n], args.attend.n_k - 1) - k;
    }
  }
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int step = n * 8 + i % 2;
      bool is_visible = false;
#pragma unroll
      for (int x = 0; x < Row::kRanges; ++x) {
        const bool is_behind = !Row::kHasFirst[x] || step >= first[i / 2][x];
        is_visible = is_visible || (is_behind && step <= last[i / 2][x]);
      }
      if (!is_visible) scores[n][i] = -kInfinity;
    }
  }
}

}  // namespace lacuna
