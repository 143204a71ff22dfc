// What a kernel reads and writes of q or of k: the two halves of the argument block under one set
// of names.
#pragma once

#include "args/predict_args.cuh"

namespace lacuna {

struct PrepareSide {
  const TensorArg& x;
  const float* mean;
  float *summary, *similarity;
  unsigned short* cells;
  signed char* values;
  float* scale;
  signed char* estimate_values;
  float* estimate_scale;
  float* bias;        ///< one row for each query head
  const float* onto;  ///< the other side's mean, which the bias projects onto
  int n, padded, heads, tiles, groups, estimate_groups;
};

template <bool kIsQuery, class Args>
__device__ __forceinline__ PrepareSide prepare_side(const Args& args) {
  const AttendArgs& a = args.attend;
  const PredictArgs& p = args.predict;
  if constexpr (kIsQuery) {
    return {a.q,
            p.q_mean,
            p.q_summary,
            p.q_similarity,
            p.q_cells,
            p.q_values,
            p.q_scale,
            p.estimate_q_values,
            p.estimate_q_scale,
            p.row_bias,
            p.k_mean,
            a.n_q,
            p.q_padded,
            a.n_h,
            p.keep_q_tiles,
            p.q_groups,
            p.estimate_q_groups};
  } else {
    return {a.k,
            p.k_mean,
            p.k_summary,
            p.k_similarity,
            p.k_cells,
            p.k_values,
            p.k_scale,
            p.estimate_k_values,
            p.estimate_k_scale,
            p.column_bias,
            p.q_mean,
            a.n_k,
            p.k_padded,
            a.n_h / a.heads_per_kv,
            p.keep_k_tiles,
            p.k_groups,
            p.estimate_k_groups};
  }
}

}  // namespace lacuna
