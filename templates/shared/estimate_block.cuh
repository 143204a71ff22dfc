// Blocks of the estimate kernels, as the host plans them and the device lays them out. Plain C++17,
// which compiler/ and the kernels both include.
#pragma once

namespace lacuna {

/// select/cells: stages of rows and of columns, some elements of each. By wgmma antidiagonals,
/// whose rows come again with every chunk of columns, have chunks of twice the width and one block
/// on a multiprocessor: the L2 could not deliver more.
inline constexpr int kCellRows = 128, kCellDepth = 64;
constexpr int cell_columns(bool by_wgmma, bool are_means) {
  return by_wgmma && !are_means ? 256 : 128;
}
constexpr int cell_stages(bool by_wgmma, bool are_means) { return by_wgmma && !are_means ? 4 : 3; }
/// Where means are compared the rows stay, and only columns come in stages.
constexpr int cell_tile_bytes(bool by_wgmma, bool are_means, int head_dim, int depth) {
  const int stages = cell_stages(by_wgmma, are_means), columns = cell_columns(by_wgmma, are_means);
  return are_means ? (kCellRows * head_dim + stages * columns * depth) * 2
                   : stages * (kCellRows + columns) * depth * 2;
}

/// select/cells/cell_shares.cuh: columns that a warp compares at once, whole tiles and whole
/// matrices of them, and those of a block.
constexpr int cell_unit_columns(int tile_columns) {
  int columns = 16;
  while (columns % tile_columns != 0) columns += 16;
  return columns;
}
constexpr int cell_share_columns(int tile_columns) { return 16 * cell_unit_columns(tile_columns); }

/// select/tokens: rows of a tile by at most 128 keys, in one stage or two.
inline constexpr int kTokenColumns = 128;
constexpr int token_tile_bytes(int rows, int width) { return (rows + kTokenColumns) * width * 2; }
/// Keys of a chunk: whole tiles.
constexpr int token_chunk_columns(int tile_k) {
  return tile_k <= 64 ? 64 / tile_k * tile_k : tile_k;
}
/// Keys of a head that a block compares with its last queries.
constexpr int token_share_columns(int tile_k) { return 8 * token_chunk_columns(tile_k); }

/// select/tokens/index_shares.cuh: vectors and weights of the index heads of a query, eight heads
/// together; as many queries as find room, or one.
constexpr int index_query_bytes(int heads, int dim) { return (heads + 7) / 8 * 8 * (dim * 2 + 4); }
constexpr int index_share_queries(int rows, int heads, int dim) {
  const int fitting = (48 << 10) / index_query_bytes(heads, dim);
  return fitting < 1 ? 1 : fitting < rows ? fitting : rows;
}
/// A score of each key besides, and scratch to reduce in.
constexpr int index_share_smem_bytes(int rows, int heads, int dim, int tile_k) {
  return index_share_queries(rows, heads, dim) * index_query_bytes(heads, dim) +
         token_share_columns(tile_k) * 4 + 64;
}

/// select/token_pairs: 256 queries by steps of 256 keys of integers.
inline constexpr int kTokenPairRows = 256, kTokenPairStages = 4, kTokenPairStepKeys = 256;
constexpr int token_pair_tile_bytes(int head_dim) {
  return (kTokenPairStages * kTokenPairStepKeys + kTokenPairRows) * head_dim;
}

/// select/token_softmax: the queries of a tile by steps of two parts of 64 keys of integers.
inline constexpr int kSoftmaxPartKeys = 64, kSoftmaxStepKeys = 2 * kSoftmaxPartKeys;
/// Three blocks of one warpgroup, or two of two, share a multiprocessor.
constexpr int softmax_stages(int tile_q) { return tile_q == 64 ? 3 : 4; }
constexpr int token_softmax_tile_bytes(int tile_q, int head_dim) {
  return (tile_q + softmax_stages(tile_q) * kSoftmaxStepKeys) * head_dim;
}

/// select/exact: as many queries by steps of 128 keys of 16 bits.
inline constexpr int kExactStages = 4, kExactStepKeys = 128;
inline constexpr int kExactColumns = 128;  ///< queries of a product
constexpr int exact_tile_bytes(int head_dim) {
  return (kExactStages * kExactStepKeys + kTokenPairRows) * head_dim * 2;
}

}  // namespace lacuna
