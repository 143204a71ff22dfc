// The rows of an estimate of tokens: query tiles of each head, or of all heads together.
#pragma once

#include "base/optional_field.cuh"
#include "select/keep/row_shares.cuh"
#include "shared/estimate_block.cuh"

namespace lacuna {

/// Is one decision that of all heads of a batch entry?
LACUNA_OPTIONAL_FIELD(bool, serves_all_heads, kServesAllHeads, false)

/// Do blocks share the keys of few rows (key_shares.cuh)?
LACUNA_OPTIONAL_FIELD(bool, shares_keys, kSharesKeys, false)

/// Rows of a batch entry.
template <class Config, class Args>
__device__ __forceinline__ int token_rows(const Args& args) {
  return (serves_all_heads<Config>() ? 1 : args.attend.n_h) * args.predict.keep_q_tiles;
}
/// By its number through the batch.
template <class Config, class Args>
__device__ __forceinline__ KeepRow token_row(const Args& args, int number) {
  if constexpr (!serves_all_heads<Config>()) return locate_keep_row<Config>(args, number);
  const int q_tiles = args.predict.keep_q_tiles;
  return keep_row_of<Config>(args, number / q_tiles, 0, number % q_tiles);
}
template <class Config, class Args>
__device__ __forceinline__ bool has_few_token_rows(const Args& args) {
  if constexpr (!shares_keys<Config>()) return false;
  return token_rows<Config>(args) <= kFewTokenRows && args.attend.n_k >= kManyKeys;
}

/// Among few rows of the whole batch.
template <class Args>
__device__ __forceinline__ long long number_of_few(const Args& args, const KeepRow& row) {
  return static_cast<long long>(row.b) * kFewTokenRows + row.h * args.predict.keep_q_tiles + row.i;
}
/// Shares of the keys of a row, of which blocks leave scores.
template <class Config, class Args>
__device__ __forceinline__ int scored_shares(const Args& args) {
  return ceil_div(args.attend.n_k, token_share_columns(Config::kTileK));
}
/// Scores of a row, by tile, and the bins that they are counted in.
template <class Args>
__device__ __forceinline__ float* few_row_scores(const Args& args, const KeepRow& row) {
  return args.predict.row_scores + number_of_few(args, row) * args.predict.keep_k_tiles;
}
template <class Config, class Args>
__device__ __forceinline__ RowBins& few_row_bins(const Args& args, const KeepRow& row) {
  const int range_words = ceil_div(scored_shares<Config>(args), 2) * 4;
  return *reinterpret_cast<RowBins*>(args.predict.row_bins +
                                     number_of_few(args, row) * (kRowBinsWords + range_words));
}

/// A share of the tiles of few rows, of which a block has one.
template <class Config, class Hooks, class Args>
using TokenRowShare = RowShare<Config, Hooks, Args, serves_all_heads<Config>()>;

/// body(share): by a block that has one; `number` is the block's.
template <class Config, class Hooks, class Args, class Body>
__device__ __forceinline__ void with_row_share(const Args& args, unsigned char* smem,
                                               const Body& body) {
  using Share = TokenRowShare<Config, Hooks, Args>;
  static_assert(sizeof(typename Share::Smem) <= Config::kSmemBytes);
  const int shares = ceil_div(args.predict.keep_k_tiles, kShareTiles);
  const int number = block_index() / shares;
  if (number >= args.attend.n_b * token_rows<Config>(args)) return;
  const KeepRow row = token_row<Config>(args, number);
  Share share(args, row, few_row_scores(args, row), few_row_bins<Config>(args, row),
              scored_shares<Config>(args), block_index() - number * shares,
              *reinterpret_cast<typename Share::Smem*>(smem));
  body(share, shares);
}

}  // namespace lacuna
