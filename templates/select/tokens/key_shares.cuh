// Scores of the few rows of an estimate of tokens: of one query, say, for which all heads decide
// together. A row is decided by one block. Where many keys are compared, blocks share them, as they
// do for the last rows of a head (last_rows.cuh), and leave predict.row_scores [b, kFewTokenRows,
// keep_k_tiles]. Then one block of the row only decides, or where `keep` takes the first tiles
// several of them do (select/keep/row_shares.cuh). Of estimates that need no sums of rows.
#pragma once

#include "select/tokens/index_shares.cuh"
#include "select/tokens/tokens.cuh"

namespace lacuna {

/// What blocks that decide a row together find: between which p a share's tiles lie, and for the
/// first share bins that are clear.
template <class Config, class Args>
__device__ __forceinline__ void prepare_bins(const Args& args, const KeepRow& row, int share,
                                             ReduceScratch& reduce) {
  constexpr int kTiles = token_share_columns(Config::kTileK) / Config::kTileK;
  RowBins& bins = few_row_bins<Config>(args, row);
  const float* const p = few_row_scores(args, row) + share * kTiles;
  const int tiles = smaller(kTiles, args.predict.keep_k_tiles - share * kTiles);
  ScoreRange range;
  __syncthreads();
  for (int t = thread_index(); t < tiles; t += Config::kThreads) range.add(p[t]);
  range.merge(BlockTeam<Config::kThreads>(reduce));
  if (thread_index() == 0) bins.ranges()[share] = {range.least, range.most};
  if (share != 0) return;
  for (int n = thread_index(); n < kScoreBins; n += Config::kThreads) bins.counts[n] = 0;
  if (thread_index() == 0) bins.visible = bins.nans = bins.candidates = 0, bins.ended = 0;
}

/// A block takes a share of the keys of a row.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_key_shares(const Args& args) {
  constexpr int kColumns = token_share_columns(Config::kTileK);
  if (!has_few_token_rows<Config>(args)) return;
  const int shares = scored_shares<Config>(args);
  const int number = block_index() / shares, share = block_index() - number * shares;
  if (number >= args.attend.n_b * token_rows<Config>(args)) return;
  extern __shared__ __align__(1024) unsigned char block_smem[];
  const KeepRow row = token_row<Config>(args, number);
  const int first = share * kColumns, end = smaller(first + kColumns, args.attend.n_k);
  if constexpr (index_dim<Config>() > 0) {
    IndexShare<Config, Hooks, Args>(args, row, first, end, block_smem).run();
  } else {
    using Block = TokenBlock<Config, Hooks, Args>;
    static_assert(!Block::kNeedsSums && !Block::kNeedsReference && !Block::kReadsPrevious);
    Block block(args, block_smem);
    block.begin(row, first, end);
    block.weigh(0.0f, 0.0f);
  }
  if constexpr (Config::kKeepsFirst)
    prepare_bins<Config>(args, row, share, *reinterpret_cast<ReduceScratch*>(block_smem));
}

/// The same blocks as those that decide.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void count_row_scores(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  if (!has_few_token_rows<Config>(args)) return;
  with_row_share<Config, Hooks>(args, block_smem, [](auto& share, int) { share.count(); });
}

}  // namespace lacuna
