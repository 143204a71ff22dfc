// Scores of few rows. A row of a pooled estimate is decided by one block. Where one query asks
// about many keys, there are only as many rows as heads: their blocks would read the summaries of
// all keys alone, while most multiprocessors have nothing to do. So where the query tiles of the
// heads of a KV head are few and key tiles are many, the kernel that summarises a key tile
// multiplies the summary with the means of these query tiles right away; the estimate reads the
// products, and only decides.
//
// predict.row_scores [b, h_kv, kFewRows, keep_k_tiles]; row (h % heads_per_kv) * keep_q_tiles + i
// of a KV head is query tile i of head h.
#pragma once

#include "arch/warp.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "select/pooled/pooled_vectors.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

/// Of the kernel that summarises and of the estimate: do they have these scores?
LACUNA_OPTIONAL_FIELD(bool, scores_few_rows, kScoresFewRows, false)

/// Query tiles of the heads of a KV head; neighbours in predict.q_summary, too.
template <class Args>
__device__ __forceinline__ int rows_of_kv_head(const Args& args) {
  return args.attend.heads_per_kv * args.predict.keep_q_tiles;
}

/// Are they few, and key tiles many? The same for all kernels of a launch, and of a batch of
/// sequences for all of a sequence.
template <class Config, class Args>
__device__ __forceinline__ bool has_few_rows(const Args& args) {
  if constexpr (!scores_few_rows<Config>()) return false;
  return rows_of_kv_head(args) <= kFewRows && args.predict.keep_k_tiles >= kManyTiles;
}

/// By key tile; `head`: the KV head, counted through the batch.
template <class Args>
__device__ __forceinline__ float* row_scores(const Args& args, long long head, int row) {
  return args.predict.row_scores + (head * kFewRows + row) * args.predict.keep_k_tiles;
}
/// Of query tile i of a query head.
template <class Args>
__device__ __forceinline__ const float* row_scores_of(const Args& args, int b, int h, int i) {
  const int row = h % args.attend.heads_per_kv * args.predict.keep_q_tiles + i;
  return row_scores(args, key_head(args, b, h), row);
}

/// Four neighbouring elements of a summary, which a lane has; `column`: of the first, counted as
/// PooledVectors does; -1: of none.
struct SummaryQuad {
  float4 x;
  int column;
};

/// Means of the queries of the rows of a KV head.
template <class Config, class Args>
__device__ __forceinline__ const float* means_of_few_rows(const Args& args, long long head) {
  return args.predict.q_summary + head * rows_of_kv_head(args) * Config::kHeadDim;
}

template <class Config>
__device__ __forceinline__ float4 elements_of_row(const float* means, int row, int column) {
  return PooledVectors<Config>::template row_elements<float4>(means + row * Config::kHeadDim,
                                                              column);
}

/// Summaries of tiles `first`, first + step, ..., up to `end`, which a whole warp has: their
/// products with every kRowStep-th row from `first_row` on. elements_of(row, column): four elements
/// of a row. Products of several rows are summed over the lanes at the same time.
template <class Config, int kRowStep, int kTiles, int kQuads, class Args, class ElementsOf>
__device__ __forceinline__ void multiply_few_rows(const Args& args, long long head, int first,
                                                  int step, int end,
                                                  const SummaryQuad (&summaries)[kTiles][kQuads],
                                                  int first_row, const ElementsOf& elements_of) {
  constexpr int kRowsAtOnce = kRowStep > 1 ? 1 : 2;  // where warps share the rows each has few
  constexpr int kSums = kRowsAtOnce * kTiles;
  const int rows = rows_of_kv_head(args);
  const int own = lane_index() / (32 / kSums), own_tile = first + own % kTiles * step;
  const bool writes = lane_index() % (32 / kSums) == 0 && own_tile < end;
#pragma unroll 1
  for (int begin = first_row; begin < rows; begin += kRowsAtOnce * kRowStep) {
    float dots[kSums];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const int row = smaller(begin + r * kRowStep, rows - 1);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) dots[r * kTiles + t] = 0.0f;
#pragma unroll
      for (int n = 0; n < kQuads; ++n) {
        if (summaries[0][n].column < 0) continue;
        const float4 q = elements_of(row, summaries[0][n].column);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const float4& x = summaries[t][n].x;
          float& dot = dots[r * kTiles + t];
          dot = fmaf(q.x, x.x, fmaf(q.y, x.y, dot));
          dot = fmaf(q.z, x.z, fmaf(q.w, x.w, dot));
        }
      }
    }
    const float dot = sum_each_over_lanes(dots);
    const int row = begin + own / kTiles * kRowStep;
    if (writes && row < rows)
      row_scores(args, head, row)[own_tile] = dot * args.attend.scale * Config::kTemperature;
  }
}

}  // namespace lacuna
