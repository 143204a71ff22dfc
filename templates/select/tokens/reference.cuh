// The exact mass of each row's `reference` keys, in log2, for an estimate that goes on from there
// (select/token_pairs/tokens_wgmma.cuh): predict.scores [b, h, q_padded], +inf for rows that take
// no part.
#pragma once

#include "select/tokens/tokens.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ReferenceBlock : TokenBlock<Config, Hooks, Args> {
  using Base = TokenBlock<Config, Hooks, Args>;
  using Base::args_, Base::row_, Base::rows_;

 public:
  using Base::Base;

  /// Block = work tile.
  __device__ __forceinline__ void run() {
    if (is_beyond<Config>(block_index(), args_.attend.n_h * args_.predict.keep_q_tiles)) return;
    row_ = locate_keep_row<Config>(args_, block_index());
    rows_ = row_.q1 - row_.q0 + 1;
    const float log2_sum = this->template sum_rows<16, true>();
    if (thread_index() >= rows_) return;
    args_.predict.scores[query_head(args_, row_.b, row_.h) * args_.predict.q_padded + row_.q0 +
                         thread_index()] = log2_sum > -kInfinity ? log2_sum : kInfinity;
  }
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_reference(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  ReferenceBlock<Config, Hooks, Args>(args, block_smem).run();
}

}  // namespace lacuna
