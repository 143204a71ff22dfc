#include "compiler/emit/stages.hpp"

#include <algorithm>
#include <bit>

#include "compiler/expr/parse.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

constexpr int kPermuteTokens = 64;    ///< tokens of a block
constexpr int kCombinedElements = 4;  ///< of a token, by a thread of `combine`
constexpr int kValueTokens = 128;     ///< ... of a prepare_values block
constexpr int kMostStridingBlocks = 512;
/// Of a prepare block, which holds them in registers. Smoothed ones take twice the room there, so
/// that fewer threads are on a multiprocessor: in smaller blocks, which wait for less.
constexpr int kBestPreparedElements = 16384, kBestSmoothedElements = 8192;
constexpr int kPreparedElementsOfThread = 64;
int best_prepared_elements(const TokenOps& ops) {
  return ops.smooth != nullptr ? kBestSmoothedElements : kBestPreparedElements;
}

std::string minimum(const std::string& a, int b) {
  return "min(" + a + ", " + std::to_string(b) + ")";
}

/// Blocks over the heads of a tensor and chunks of its tokens.
std::string blocks_over(Tensor tensor, int tokens) {
  return std::string("n_b * ") + heads_of(tensor) + " * (" +
         ceil_divide(length_of(tensor), tokens) + ")";
}

std::string blocks_over_rows(const StageFacts& facts) {
  return "n_b * n_h * (" + ceil_divide("n_q", facts.attend.tile_q) + ")";
}

/// A block of attend may take several rows together.
std::string blocks_of_attend(const StageFacts& f) {
  const int rows = f.attend.tile_q * f.plan.attend.tile_rows.value;
  return "n_b * n_h * (" + ceil_divide("n_q", rows) + ")";
}

/// The same of items, where rows are split.
std::string items_of(const StageFacts& f, const std::string& rows) {
  return f.splits_rows() ? rows + " * " + std::to_string(f.split_rows()) : rows;
}

// needed
bool permutes(const StageFacts& f, Tensor) { return f.permutes; }
bool has_mean(const StageFacts& f, Tensor t) { return f.ops(t).smooth != nullptr; }
bool prepares(const StageFacts& f, Tensor t) { return f.ops(t).prepares(); }
bool has_values(const StageFacts& f, Tensor) { return f.quantise_values != nullptr; }
bool is_pooled(const StageFacts& f, Tensor) {
  return f.estimate != nullptr && f.estimate->rows.kind == SummaryKind::kMean;
}
bool is_of_pairs(const StageFacts& f, Tensor) { return f.estimates_pairs(); }
bool has_reference(const StageFacts& f, Tensor) { return f.estimates_pairs() && f.has_reference(); }
bool is_exact(const StageFacts& f, Tensor) { return f.estimates_exactly(); }
bool has_sums(const StageFacts& f, Tensor) { return f.estimates_exactly() && f.has_reference(); }
bool is_of_cells(const StageFacts& f, Tensor) { return f.estimates_cells(); }
bool is_of_tokens(const StageFacts& f, Tensor t) {
  return f.estimate != nullptr && !is_pooled(f, t) && !f.estimates_cells() &&
         !f.estimates_by_wgmma();
}
bool selects(const StageFacts& f, Tensor) {
  return f.select != nullptr && (f.estimate == nullptr || f.estimates_last_rows());
}
bool compacts(const StageFacts& f, Tensor) { return f.compact != nullptr; }
bool is_wgmma(const StageFacts& f, Tensor) { return f.is_wgmma(); }
bool is_mma(const StageFacts& f, Tensor) { return !f.is_wgmma(); }
bool splits_rows(const StageFacts& f, Tensor) { return f.splits_rows(); }

// grid
std::string permute_grid(const StageFacts&, Tensor t) { return blocks_over(t, kPermuteTokens); }
std::string statistics_grid(const StageFacts&, Tensor t) {
  return blocks_over(t, kStatisticTokens);
}
std::string heads_grid(const StageFacts&, Tensor t) { return std::string("n_b * ") + heads_of(t); }
std::string prepare_grid(const StageFacts& f, Tensor t) {
  const int blocks = kPreparedTokens / prepare_tokens(f.ops(t), f.head_dim());
  return std::string("n_b * ") + heads_of(t) + " * (" + ceil_divide(length_of(t), kPreparedTokens) +
         ")" + (blocks > 1 ? " * " + std::to_string(blocks) : "");
}
std::string values_grid(const StageFacts&, Tensor t) {
  return std::string("n_b * ") + heads_of(t) + " * (" + ceil_divide(length_of(t), kPreparedTokens) +
         ") * " + std::to_string(kPreparedTokens / kValueTokens);
}
/// Blocks that stride over groups of so many query tiles.
std::string striding_grid(const StageFacts& f, int q_tiles) {
  return minimum("n_b * n_h * (" + ceil_divide("n_q", f.estimate->tile_q * q_tiles) + ")",
                 kMostStridingBlocks);
}
std::string pooled_grid(const StageFacts& f, Tensor) {
  return striding_grid(f, f.rows_of_estimate());
}
std::string tokens_grid(const StageFacts& f, Tensor) {
  return f.estimates_last_rows() ? "n_b * n_h" : striding_grid(f, 1);
}
std::string cells_grid(const StageFacts& f, Tensor) {
  return striding_grid(f, estimate_cell_tiles(*f.estimate));
}
std::string pairs_grid(const StageFacts&, Tensor) {
  return "n_b * n_h * (" + ceil_divide("n_q", kEstimatePairsRows) + ")";
}
std::string select_grid(const StageFacts& f, Tensor) {
  return "n_b * n_h * (" + ceil_divide("n_q", f.select->tile_q) + ")";
}
std::string compact_grid(const StageFacts& f, Tensor) {
  return ceil_divide(blocks_over_rows(f), kStageThreads / kWarpThreads);
}
std::string order_grid(const StageFacts& f, Tensor) {
  return ceil_divide(blocks_of_attend(f), kStageThreads);
}
std::string attend_grid(const StageFacts& f, Tensor) {
  return f.gathers() ? minimum(blocks_over_rows(f), kMostStridingBlocks)
                     : items_of(f, blocks_over_rows(f));
}
std::string persistent_grid(const StageFacts& f, Tensor) {
  return "min(" + items_of(f, blocks_of_attend(f)) + ", sm_count)";
}
std::string combine_grid(const StageFacts& f, Tensor t) {
  return blocks_over(t, kStageThreads / (f.head_dim() / kCombinedElements));
}

// shared memory
template <int kBytes>
int fixed(const StageFacts&) {
  return kBytes;
}
/// Of templates/select/pooled/pooled_means.cuh: queries and logits of 16 rows of 512 tiles, and of
/// each warp 32 keys, or a row's order, bits and p.
int pooled_smem(const StageFacts& f) {
  constexpr int kRows = 16, kTiles = 512, kWarps = kStageThreads / kWarpThreads;
  // Of templates/select/pooled/pooled_tokens.cuh: three factors of each number, and of each warp 40
  // logits of each row and two numbers besides.
  if (f.decides_keys()) return kRows * (3 * f.head_dim() * 2 + kWarps * 42 * 4 + 8);
  if (f.estimate->columns.kind == SummaryKind::kTokens) return 40960;
  const int rows = kRows * (f.head_dim() + 4 + kTiles + 8);
  const int of_warp = uses(f.select->keep, Variable::kScore) ? 2 * kTiles + kTiles / 32 : 32 * 20;
  return (rows + kWarps * of_warp) * 4;
}
int tokens_smem(const StageFacts& f) {
  return estimate_block_smem_bytes(*f.estimate, f.rows_of_estimate(), f.head_dim());
}
/// Of templates/prepare/prepare.cuh: of each row and of each warp's sums.
int prepare_smem(const StageFacts& f) {
  constexpr int kRowBytes = 20, kWarps = kStageThreads / kWarpThreads, kWarpBytes = 4;
  const int sums = 2 * f.head_dim() * static_cast<int>(sizeof(float));
  return kPreparedTokens * kRowBytes + kWarps * (kWarpBytes + sums);
}
/// Of templates/prepare/prepare_values.cuh: codes, scales and their reciprocals.
int values_smem(const StageFacts& f) { return f.head_dim() * (kValueTokens + 8); }
/// Those that leave a thread 80 registers where it holds 64 elements.
int values_blocks(const StageFacts& f, Tensor) {
  return kValueTokens * f.head_dim() <= kPreparedElementsOfThread * kStageThreads ? 3 : 1;
}
int pairs_smem(const StageFacts& f) { return estimate_pairs_smem_bytes(f.head_dim()); }
int exact_smem(const StageFacts& f) { return estimate_exact_smem_bytes(f.head_dim()); }
int attend_smem(const StageFacts& f) { return f.plan.attend.smem_bytes.value; }

// decides
bool never(const StageFacts&) { return false; }
bool decides(const StageFacts&) { return true; }
bool unless_attend_reads(const StageFacts& f) { return !f.quantises_attend(); }

// threads
int stage_threads(const StageFacts&, Tensor) { return kStageThreads; }
int prepare_threads(const StageFacts& f, Tensor t) {
  const int tokens = prepare_tokens(f.ops(t), f.head_dim());
  const int wanted = std::max(tokens * f.head_dim() / kPreparedElementsOfThread, tokens);
  return wanted <= kStageThreads / 2 ? kStageThreads / 2 : kStageThreads;
}
int pairs_threads(const StageFacts&, Tensor) { return kEstimatePairsThreads; }
/// One warpgroup of the wgmma family loads what the others compute with.
int attend_threads(const StageFacts& f, Tensor) {
  const int computing = f.plan.attend.warps.value * kWarpThreads;
  return computing + (f.is_wgmma() ? kWarpgroupThreads : 0);
}

// blocks on a multiprocessor that the compiler leaves registers for
int one_block(const StageFacts&, Tensor) { return 1; }
/// Two where there is shared memory for them.
int cells_blocks(const StageFacts& f, Tensor) {
  const Target& target = f.plan.target;
  const int bytes = tokens_smem(f) + target.smem_bytes_reserved;
  return 2 * bytes <= target.smem_bytes_per_sm ? 2 : 1;
}
/// Few keys to wait for and much to wait: as many as there is shared memory for.
int reference_blocks(const StageFacts& f, Tensor) {
  return f.estimate->tile_q == kWarpgroupRows ? 4 : 1;
}
/// Those that leave a thread 80 registers for 64 elements; 128 for as many smoothed ones, or where
/// narrow rows make a warp sum more of them at once.
int prepare_blocks(const StageFacts& f, Tensor t) {
  const int elements = prepare_tokens(f.ops(t), f.head_dim()) * f.head_dim();
  const bool smooths = f.ops(t).smooth != nullptr;
  if (elements > prepare_threads(f, t) * kPreparedElementsOfThread) return 1;
  return smooths || f.head_dim() < 128 ? 2 * kStageThreads / prepare_threads(f, t) : 3;
}

int pooled_blocks(const StageFacts& f, Tensor) {
  return f.decides_keys() || f.estimate->columns.kind != SummaryKind::kTokens ? 2 : 1;
}

struct StageRow {
  const char* stage;
  const char* header;
  const char* function;
  Tensor tensor;
  bool (*needed)(const StageFacts&, Tensor);
  std::vector<ConfigField> (*config)(const StageFacts&, Tensor);
  std::string (*grid)(const StageFacts&, Tensor);
  int (*smem_bytes)(const StageFacts&);
  bool (*decides)(const StageFacts&);
  int (*threads)(const StageFacts&, Tensor) = stage_threads;
  int (*blocks_per_sm)(const StageFacts&, Tensor) = one_block;
};

constexpr const char* kPermute = "prepare/permute.cuh";
constexpr const char* kStatistics = "prepare/statistics.cuh";
constexpr const char* kPrepare = "prepare/prepare.cuh";
constexpr const char* kCompact = "select/compact.cuh";
using enum Tensor;

/// Every kernel there is, in launch order.
constexpr StageRow kStages[] = {
    {"permute_q", kPermute, "permute_tokens", kQ, permutes, tensor_config, permute_grid, fixed<0>,
     never},
    {"permute_k", kPermute, "permute_tokens", kK, permutes, tensor_config, permute_grid, fixed<0>,
     never},
    {"permute_v", kPermute, "permute_tokens", kV, permutes, tensor_config, permute_grid, fixed<0>,
     never},
    {"mean_q", kStatistics, "token_statistics", kQ, has_mean, tensor_config, statistics_grid,
     fixed<8192>, unless_attend_reads},
    {"finish_mean_q", kStatistics, "finish_statistics", kQ, has_mean, finish_config, heads_grid,
     fixed<8192>, unless_attend_reads},
    {"mean_k", kStatistics, "token_statistics", kK, has_mean, tensor_config, statistics_grid,
     fixed<8192>, unless_attend_reads},
    {"finish_mean_k", kStatistics, "finish_statistics", kK, has_mean, finish_config, heads_grid,
     fixed<8192>, unless_attend_reads},
    {"largest_v", kStatistics, "token_statistics", kV, has_values, tensor_config, statistics_grid,
     fixed<8192>, never},
    {"finish_largest_v", kStatistics, "finish_statistics", kV, has_values, finish_config,
     heads_grid, fixed<8192>, never},
    {"prepare_q", kPrepare, "prepare_tokens", kQ, prepares, prepare_config, prepare_grid,
     prepare_smem, unless_attend_reads, prepare_threads, prepare_blocks},
    {"prepare_k", kPrepare, "prepare_tokens", kK, prepares, prepare_config, prepare_grid,
     prepare_smem, unless_attend_reads, prepare_threads, prepare_blocks},
    {"prepare_v", "prepare/prepare_values.cuh", "prepare_values", kV, has_values,
     prepare_values_config, values_grid, values_smem, never, stage_threads, values_blocks},
    {"estimate", "select/pooled/pooled.cuh", "predict_pooled", kQ, is_pooled, pooled_config,
     pooled_grid, pooled_smem, decides, stage_threads, pooled_blocks},
    {"estimate", "select/tokens/tokens.cuh", "predict_tokens", kQ, is_of_tokens, tokens_config,
     tokens_grid, tokens_smem, decides},
    {"estimate", "select/antidiagonal/cells.cuh", "predict_cells", kQ, is_of_cells, tokens_config,
     cells_grid, tokens_smem, decides, stage_threads, cells_blocks},
    {"reference", "select/tokens/reference.cuh", "predict_reference", kQ, has_reference,
     tokens_config, select_grid, tokens_smem, decides, stage_threads, reference_blocks},
    {"estimate", "select/token_pairs/tokens_wgmma.cuh", "predict_token_pairs", kQ, is_of_pairs,
     tokens_config, pairs_grid, pairs_smem, decides, pairs_threads},
    {"reference", "select/exact/exact_sums.cuh", "predict_exact_sums", kQ, has_sums, tokens_config,
     pairs_grid, exact_smem, decides, pairs_threads},
    {"estimate", "select/exact/exact_largest.cuh", "predict_exact_largest", kQ, is_exact,
     tokens_config, pairs_grid, exact_smem, decides, pairs_threads},
    {"select", "select/keep/select.cuh", "select_rows", kQ, selects, select_config, select_grid,
     fixed<16384>, decides},
    {"compact", kCompact, "compact_lists", kQ, compacts, compact_config, compact_grid, fixed<0>,
     never},
    {"order_rows", kCompact, "order_rows", kQ, compacts, order_config, order_grid, fixed<33856>,
     never},
    {"attend", "attend/mma/attend_mma.cuh", "attend_mma", kQ, is_mma, attend_config, attend_grid,
     attend_smem, never, attend_threads},
    {"attend", "attend/wgmma/attend_wgmma.cuh", "attend_wgmma", kQ, is_wgmma, attend_config,
     persistent_grid, attend_smem, never, attend_threads},
    {"combine", "attend/combine.cuh", "combine_shares", kQ, splits_rows, combine_config,
     combine_grid, fixed<0>, never},
    {"unpermute", kPermute, "unpermute_results", kQ, permutes, unpermute_config, permute_grid,
     fixed<0>, never},
};

/// "prepare_q" -> "PrepareQConfig"
std::string config_name(const std::string& stage) {
  std::string name;
  bool begins_word = true;
  for (const char c : stage) {
    if (c != '_') name += begins_word ? static_cast<char>(c - 'a' + 'A') : c;
    begins_word = c == '_';
  }
  return name + "Config";
}

std::string entry_name(const std::string& stage, const Program& program) {
  std::string name = "lacuna_" + stage + "_" + program.name;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

StageKernel make_kernel(const StageRow& row, const StageFacts& facts) {
  const bool is_attend = row.config == attend_config;
  StageKernel kernel;
  kernel.stage = row.stage;
  kernel.entry = entry_name(kernel.stage, facts.plan.program);
  kernel.config_name = is_attend ? kAttendConfig : config_name(kernel.stage);
  kernel.header = row.header;
  kernel.function = row.function;
  kernel.config = row.config(facts, row.tensor);
  kernel.grid_name = is_attend ? "grid" : "grid." + kernel.stage;
  kernel.grid = row.grid(facts, row.tensor);
  kernel.threads = row.threads(facts, row.tensor);
  kernel.smem_bytes = row.smem_bytes(facts);
  kernel.decides = row.decides(facts);
  kernel.blocks_per_sm = row.blocks_per_sm(facts, row.tensor);
  return kernel;
}

}  // namespace

std::vector<StageKernel> stage_kernels(const StageFacts& facts) {
  std::vector<StageKernel> kernels;
  for (const StageRow& row : kStages) {
    if (row.needed(facts, row.tensor)) kernels.push_back(make_kernel(row, facts));
  }
  for (StageKernel& kernel : kernels) {
    kernel.follows = facts.plan.target.overlaps_kernels && &kernel != &kernels.front();
    kernel.precedes = facts.plan.target.overlaps_kernels && &kernel != &kernels.back();
  }
  return kernels;
}

int prepare_tokens(const TokenOps& ops, int head_dim) {
  const auto best = std::bit_floor(static_cast<unsigned>(best_prepared_elements(ops) / head_dim));
  int tokens = std::min(static_cast<int>(best), kPreparedTokens);
  const auto cover = [&](const auto* op) {
    if (op != nullptr) tokens = std::max(tokens, op->tile);
  };
  cover(ops.summary);
  cover(ops.similarity);
  cover(ops.quantise);
  cover(ops.estimate_quantise);
  return tokens;
}

std::string ceil_divide(const std::string& length, int divisor) {
  return "(" + length + " + " + std::to_string(divisor - 1) + ") // " + std::to_string(divisor);
}

const char* length_of(Tensor tensor) { return tensor == Tensor::kQ ? "n_q" : "n_k"; }
const char* heads_of(Tensor tensor) { return tensor == Tensor::kQ ? "n_h" : "n_h_kv"; }
std::string padded_length(Tensor tensor) {
  return ceil_divide(length_of(tensor), kPreparedTokens) + " * " + std::to_string(kPreparedTokens);
}

}  // namespace lacuna
