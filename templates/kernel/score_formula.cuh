// The score formula of a spec on a lane's accumulators, taken apart by the compiler
// (compiler/expr/score_parts.hpp):
//
//   score = factor * core(s) + offset(k) + rest
//
// `factor` and the slope of `offset` belong to a row; `offset` is worked out for the first key of a
// lane, and grows evenly from there. A score that has no core and no rest costs two multiply-adds.
#pragma once

#include "base/math.cuh"

namespace lacuna {

/// What becomes of a score: score * factor - less, of the lane's two rows.
struct ScoreUnit {
  float factor = 1.0f;
  float less[2] = {0.0f, 0.0f};
};

/// Products of queries q and q + 8 with kBlocks blocks of 8 keys, of which a lane has keys k + 8 *
/// n and k + 8 * n + 1 -> scores, in `unit`.
template <class Hooks, int kBlocks, class Args>
__device__ __forceinline__ void apply_score_formula(const Args& args, float (*scores)[4], int q,
                                                    int k, int h, int b,
                                                    const ScoreUnit& unit = {}) {
  using Row = typename Hooks::ScoreRow;
  const float scale = args.attend.scale;
  const Row rows[2] = {Hooks::score_row(args, q, h, b), Hooks::score_row(args, q + 8, h, b)};
  float factor[2], slope[2], base[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    factor[r] = rows[r].factor * (Row::kHasCore ? unit.factor : scale * unit.factor);
    slope[r] = rows[r].slope * unit.factor;
    base[r] = -unit.less[r];
    if constexpr (Row::kHasOffset) {
      const float offset = Hooks::score_offset(args, rows[r], q + 8 * r, k, h, b);
      base[r] = fmaf(offset, unit.factor, base[r]);
    }
  }
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i / 2, step = n * 8 + i % 2;
      float& score = scores[n][i];
      float more = base[r];
      if constexpr (Row::kHasSlope) more = fmaf(static_cast<float>(step), slope[r], more);
      if constexpr (Row::kHasRest)
        more = fmaf(Hooks::score_rest(args, rows[r], q + 8 * r, k + step, h, b), unit.factor, more);
      if constexpr (Row::kHasCore)
        score = Hooks::score_core(args, rows[r], score * scale, q + 8 * r, k + step, h, b);
      score = fmaf(score, factor[r], more);
    }
  }
}

}  // namespace lacuna
