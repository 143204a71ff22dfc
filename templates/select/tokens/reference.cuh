// The exact mass of each row's `reference` keys, in log2, for an estimate that goes on from there
// (select/token_pairs/tokens_wgmma.cuh): predict.scores [b, h, q_padded], +inf for rows that take
// no part.
#pragma once

#include "select/tokens/tokens.cuh"

namespace lacuna {

/// Block = work tile.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_reference(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  if (is_beyond<Config>(block_index(), args.attend.n_h * args.predict.keep_q_tiles)) return;
  TokenBlock<Config, Hooks, Args> block(args, block_smem);
  const KeepRow row = locate_keep_row<Config>(args, block_index());
  block.begin(row);
  const float log2_sum = block.sum_reference();
  if (thread_index() > row.q1 - row.q0) return;
  args.predict
      .scores[query_head(args, row.b, row.h) * args.predict.q_padded + row.q0 + thread_index()] =
      log2_sum > -kInfinity ? log2_sum : kInfinity;
}

}  // namespace lacuna
