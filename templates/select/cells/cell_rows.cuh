// Estimates over cells with few rows and many keys: what the blocks that share the keys
// (cell_shares.cuh) leave for the block that decides about a row (cells.cuh).
#pragma once

#include "base/optional_field.cuh"
#include "select/cells/cell_shape.cuh"
#include "select/tokens/token_reduce.cuh"

namespace lacuna {

/// Do blocks share the keys of few rows?
LACUNA_OPTIONAL_FIELD(bool, shares_cells, kSharesCells, false)

/// Are the rows of a head few, and keys many? The same for all kernels of a launch, and of a batch
/// of sequences for all of a sequence.
template <class Config, class Args>
__device__ __forceinline__ bool has_few_cell_rows(const Args& args) {
  if constexpr (!shares_cells<Config>()) return false;
  return args.attend.n_q <= kFewCellRows * Config::kCell && args.attend.n_k >= kManyKeys;
}

/// Numbers of a tile and row: its log-sum and what its logits are reduced to, as far as they exist.
template <class Config>
struct FewCellRows {
  using Shape = CellShape<Config>;
  static constexpr int kLogSums = 0, kLogits = Shape::kHasLogSums ? 1 : 0;
  static constexpr int kNumbers = kLogits + (Shape::kHasLogits ? 1 : 0);

  /// predict.row_scores [b, h, kNumbers, kFewCellRows, keep_k_tiles], from a row on.
  template <class Args>
  __device__ __forceinline__ static float* row(const Args& args, int b, int h, int number, int r) {
    const long long place = (query_head(args, b, h) * kNumbers + number) * kFewCellRows + r;
    return args.predict.row_scores + place * args.predict.keep_k_tiles;
  }

  /// By the block that decides: the numbers of row r to plane_of(number * kRows + r), by tile, and
  /// what its logits are reduced by; +inf of rows that take no part. counts(row, j): does tile j?
  template <class Args, class PlaneOf, class Counts>
  __device__ __forceinline__ static void take_rows(const Args& args, const KeepRow& group,
                                                   float (&offsets)[Shape::kRows],
                                                   const PlaneOf& plane_of, const Counts& counts,
                                                   ReduceScratch& reduce) {
    const BlockTeam<Config::kThreads> team(reduce);
    for (int r = thread_index(); r < Shape::kRows; r += Config::kThreads) offsets[r] = kInfinity;
    team.sync();
#pragma unroll 1
    for (int r = 0; r * Config::kCell < args.attend.n_q; ++r) {
      const KeepRow tile =
          keep_row_of<Config>(args, group.b, group.h, group.i + r / Shape::kWorkTiles);
      const float own = take(
          args, group.b, group.h, r, plane_of, [&](int j) { return counts(tile, j); }, team);
      if (thread_index() == 0 && own > -kInfinity) offsets[r] = kIsPlain ? 0.0f : own;
    }
  }

 private:
  static constexpr bool kIsPlain = Config::kNormalise == Normalise::kNone;

  /// Returns the log-sum of the tiles that count, or the largest logit; not more than -inf of
  /// nothing, and of a row with a NaN.
  template <class Args, class PlaneOf, class Counts>
  __device__ __forceinline__ static float take(const Args& args, int b, int h, int r,
                                               const PlaneOf& plane_of, const Counts& counts,
                                               const BlockTeam<Config::kThreads>& team) {
    constexpr int kOfOffset = Shape::kIsRowMax ? kLogits : kLogSums;
    RowSum sum;
#pragma unroll
    for (int number = 0; number < kNumbers; ++number) {
      const float* const from = row(args, b, h, number, r);
      float* const to = plane_of(number * Shape::kRows + r);
#pragma unroll 4
      for (int j = thread_index(); j < args.predict.keep_k_tiles; j += Config::kThreads) {
        const float x = from[j];
        to[j] = x;
        if (number == kOfOffset && counts(j)) sum.merge(x, x == x ? x > -kInfinity : x);
      }
    }
    const float largest = team.max(sum.largest), least = largest > -kInfinity ? largest : 0.0f;
    const float total = team.sum(sum.sum * exp2_approx((sum.largest - least) * kLog2E));
    if constexpr (Shape::kIsRowMax) return total == total ? largest : -kInfinity;
    return Shape::kHasLogSums ? fmaf(log2_approx(total), kLn2, largest) : 0.0f;
  }
};

}  // namespace lacuna
