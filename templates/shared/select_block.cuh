// Blocks of the kernels that decide about tiles, as the host plans them and the device lays them
// out. Plain C++17, which compiler/ and the kernels both include.
#pragma once

namespace lacuna {

/// Blocks of a kernel that goes from one piece of work to the next: enough for every
/// multiprocessor, few enough for scratch memory of each.
inline constexpr int kMostBlocks = 512;

/// Tiles of the longest row that a warp decides by itself.
inline constexpr int kMostWarpTiles = 512;

/// select/pooled/row_scores.cuh: query tiles of the heads of a KV head that are few, and key tiles
/// that are many.
inline constexpr int kFewRows = 16, kManyTiles = 64;
/// The same of rows of tokens of a batch entry (select/tokens/key_shares.cuh), and keys.
inline constexpr int kFewTokenRows = 4, kManyKeys = 4096;
/// The same of rows of cells of a head (select/cells/cell_shares.cuh).
inline constexpr int kFewCellRows = 16;

/// select/keep/row_shares.cuh: tiles of a share of such a row, bins that their scores are counted
/// in, and tiles of one bin that are compared with each other.
inline constexpr int kShareTiles = 2048, kScoreBins = 2048, kMostCandidates = 1024;
/// What is known of a row, in words: bins, four numbers, keys and places of candidates.
inline constexpr int kRowBinsWords = kScoreBins + 4 + 2 * kMostCandidates;

/// Query tiles whose means one matrix product takes (select/pooled).
inline constexpr int kMeanRows = 16;

/// select/pooled/pooled_means.cuh: a warp multiplies 32 means of keys, 16 elements at a time. Rows
/// are padded, so that neighbouring ones begin in different banks.
inline constexpr int kMeanColumns = 32, kMeanDepth = 16;
inline constexpr int kMeanPad = 4, kMeanLogitPad = 8;
/// Of each warp: its keys, or where a formula reads scores the order, bits and p of a row.
constexpr int pooled_means_warp_words(bool reads_score) {
  return reads_score ? 2 * kMostWarpTiles + kMostWarpTiles / 32
                     : kMeanColumns * (kMeanDepth + kMeanPad);
}
/// `length` elements of a mean, or twice as many of bounds.
constexpr int pooled_means_smem_bytes(int warps, int length, bool reads_score) {
  const int row_words = length + kMeanPad + kMostWarpTiles + kMeanLogitPad;
  return (kMeanRows * row_words + warps * pooled_means_warp_words(reads_score)) * 4;
}

/// select/pooled/pooled_tokens.cuh: a mean is the sum of three factors; a warp has the logits of 32
/// keys for each row and two numbers besides, and the block two of each row.
inline constexpr int kMeanFactors = 3;
inline constexpr int kMeanKeys = 32, kMeanKeyPad = 8;
inline constexpr int kMeanWarpWords = kMeanKeys + kMeanKeyPad + 2, kMeanRowBytes = 8;
constexpr int pooled_tokens_smem_bytes(int warps, int head_dim) {
  return kMeanRows * (kMeanFactors * 2 * head_dim + warps * kMeanWarpWords * 4 + kMeanRowBytes);
}

/// select/compact.cuh, `order_rows`: lengths of lists that are counted (longer lists are compared
/// with each other), those of the block's rows, and scratch to reduce in.
inline constexpr int kOrderBins = 4096, kReduceWords = 16;
constexpr int order_smem_bytes(int threads) {
  return (2 * kOrderBins + threads + kReduceWords) * 4;
}

/// select/pairs.cuh: what each warp has found of its tiles, two words.
constexpr int pair_smem_bytes(int threads) { return threads / 32 * 2 * 4; }

// Numbers for each tile of a row in the scratch memory of a block: those of the estimate, and where
// tiles are put in order that order and room to find it.
constexpr int order_planes(bool orders_tiles) { return orders_tiles ? 2 : 0; }
/// p and score: of scores that the spec gives.
constexpr int row_planes(bool orders_tiles) { return 2 + order_planes(orders_tiles); }
/// Blocks that put the tiles of one head in order, a share of them each.
inline constexpr int kOrderShares = 8;
/// The same of the last rows of a head, and where tiles are put in order the keys of the shares.
constexpr int last_row_planes(bool orders_tiles) {
  return row_planes(orders_tiles) + (orders_tiles ? 1 : 0);
}
/// Logits, and sums or p, of each of the rows that a block takes.
constexpr int pooled_planes(int rows, bool orders_tiles) {
  return 2 * rows + order_planes(orders_tiles);
}
/// Of a row of tokens: p alone suffices where no order is asked for.
constexpr int token_planes(bool orders_tiles) {
  return orders_tiles ? row_planes(orders_tiles) : 1;
}
/// Of a row of integers that are summed by wgmma, where `keep` asks for the first of it, or an
/// order.
constexpr int softmax_planes(bool orders_tiles) { return 1 + order_planes(orders_tiles); }
/// Of rows of cells: log-sums and logits as far as they are needed; p and score of one row.
constexpr int cell_planes(int rows, bool has_log_sums, bool has_logits, bool orders_tiles) {
  const int of_row = (has_log_sums ? 1 : 0) + (has_logits ? 1 : 0);
  return rows * of_row + row_planes(orders_tiles);
}

}  // namespace lacuna
