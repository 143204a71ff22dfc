// What one block of an estimate kernel takes of a multiprocessor
// (templates/select/pooled/pooled.cuh, tokens/tokens.cuh, cells/cells.cuh). Passes refuse what does
// not fit; the lowerings write the numbers into the kernel's Config.
#pragma once

#include "compiler/ir/program.hpp"
#include "templates/shared/estimate_block.cuh"

namespace lacuna {

/// Rows that a block compares at once: work tiles of means; cells of several tiles; else the
/// rows of one tile, padded to whole mma.
int estimate_rows(const Estimate& estimate);

/// Dynamic shared memory of a block that compares tokens, or the last queries, with keys. `rows`:
/// what estimate_rows says.
int estimate_block_smem_bytes(const Estimate& estimate, int rows, int head_dim);
/// The formula with its numbers; the same of those below.
std::string estimate_block_smem_formula(const Estimate& estimate, int rows, int head_dim);
/// The same of a block that compares cells of tokens (templates/select/cells/cell_shape.cuh).
int cell_smem_bytes(const Estimate& estimate, bool by_wgmma, int head_dim);
std::string cell_smem_formula(const Estimate& estimate, bool by_wgmma, int head_dim);
/// Of a block that compares 256 queries with all keys by wgmma
/// (templates/select/token_pairs/token_pair_shape.cuh): the queries, four steps of 256 keys, and
/// what is known of them and of the rows.
int token_pair_smem_bytes(int head_dim);
std::string token_pair_smem_formula(int head_dim);
/// Of a block that compares the queries of one tile with 128 keys after the other
/// (templates/select/token_softmax/token_softmax_shape.cuh), how many threads of it compute, and
/// how many weights it stores for each key tile.
int token_softmax_smem_bytes(const Estimate& estimate, int head_dim);
std::string token_softmax_smem_formula(const Estimate& estimate, int head_dim);
int token_softmax_consumers(const Estimate& estimate);
int token_softmax_weights(const Estimate& estimate);
/// The same of tokens as they are, in steps of 128 keys (templates/select/exact/exact_shape.cuh).
int estimate_exact_smem_bytes(int head_dim);
std::string estimate_exact_smem_formula(int head_dim);
/// Of both.
inline constexpr int kTokenPairThreads = 640;  ///< four warpgroups compute, one loads
/// Query tiles whose cells a block compares.
int estimate_cell_tiles(const Estimate& estimate);

}  // namespace lacuna
