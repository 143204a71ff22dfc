// The rows of an estimate of tokens: query tiles of each head, or of all heads together.
#pragma once

#include "base/optional_field.cuh"
#include "select/keep/keep_row.cuh"

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

}  // namespace lacuna
