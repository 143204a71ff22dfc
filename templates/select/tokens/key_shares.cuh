// Scores of the few rows of an estimate of tokens: of one query, say, for which all heads decide
// together. A row is decided by one block. Where many keys are compared, blocks share them, as they
// do for the last rows of a head (last_rows.cuh), and leave predict.row_scores [b, kFewTokenRows,
// keep_k_tiles]; the block of the row then only decides. Of estimates that need no sums of rows.
#pragma once

#include "select/tokens/tokens.cuh"

namespace lacuna {

/// A block takes a share of the keys of a row.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_key_shares(const Args& args) {
  constexpr int kColumns = token_share_columns(Config::kTileK);
  using Block = TokenBlock<Config, Hooks, Args>;
  static_assert(!Block::kNeedsSums && !Block::kNeedsReference && !Block::kReadsPrevious);
  if (!has_few_token_rows<Config>(args)) return;
  const int shares = ceil_div(args.attend.n_k, kColumns);
  const int row = block_index() / shares, share = block_index() - row * shares;
  if (row >= args.attend.n_b * token_rows<Config>(args)) return;
  extern __shared__ __align__(1024) unsigned char block_smem[];
  Block block(args, block_smem);
  block.begin(token_row<Config>(args, row), share * kColumns,
              smaller((share + 1) * kColumns, args.attend.n_k));
  block.weigh(0.0f, 0.0f);
}

}  // namespace lacuna
