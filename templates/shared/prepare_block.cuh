// Blocks of the kernels around attend that go through tokens, as the host plans them and the device
// lays them out. Plain C++17, which compiler/ and the kernels both include.
#pragma once

namespace lacuna {

/// Tokens that a block of `prepare` takes at most, and that lengths of the workspace are multiples
/// of: tiles that are prepared divide it.
inline constexpr int kPreparedTokens = 256;
/// Tokens that `prepare` writes of so many.
constexpr int prepared_length(int tokens) {
  return (tokens + kPreparedTokens - 1) / kPreparedTokens * kPreparedTokens;
}
inline constexpr int kValueTokens = 128;       ///< of a block of `prepare_values`
inline constexpr int kPermutedTokens = 64;     ///< of a block of `permute_tokens`
inline constexpr int kStatisticsTokens = 512;  ///< of a block of `token_statistics`

// Elements of a row that one thread takes.
inline constexpr int kMeanElements = 8;      ///< in `token_means`
inline constexpr int kMergedElements = 8;    ///< in `merge_branch`
inline constexpr int kCombinedElements = 4;  ///< in `combine_shares`

/// Shared memory of `prepare_tokens`: the length of each row, its largest element and the divisor
/// of its group; of each warp its largest element and two rows of sums.
inline constexpr int kPreparedRowBytes = 20, kPreparedWarpBytes = 4;
constexpr int prepare_smem_bytes(int warps, int head_dim) {
  return kPreparedTokens * kPreparedRowBytes + warps * (kPreparedWarpBytes + 2 * head_dim * 4);
}

/// Tiles that a warp of `bound_keys` takes one after the other, and shared memory for the rows that
/// it multiplies bounds with.
inline constexpr int kBoundedTiles = 4;
/// Where summaries stay, tiles that a warp of `bound_keys` or `prepare_tokens` reads.
inline constexpr int kKnownTiles = 8;
constexpr int bounded_rows_bytes(int rows, int head_dim) { return rows * 2 * head_dim * 4; }

/// Of `prepare_values`: the codes of each channel, its scale and the reciprocal of that.
inline constexpr int kValueScaleBytes = 8;
constexpr int prepare_values_smem_bytes(int head_dim) {
  return head_dim * (kValueTokens + kValueScaleBytes);
}

}  // namespace lacuna
