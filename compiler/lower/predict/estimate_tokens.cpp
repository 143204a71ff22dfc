// An estimate of tokens or of the last queries, by mma.sync, or of cells.
#include <algorithm>

#include "compiler/expr/text/parse.hpp"
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/predict/estimate_family.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "compiler/lower/predict/row_scores.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/target/estimate_block.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

/// Blocks that put the tiles of a head in order (select/tokens/order_last_rows.cuh): OrderScratch,
/// which has a number for each digit and warp, with shares of up to 4096 tiles; and the keys of
/// heads of up to 16384. Longer ones lie in the workspace.
constexpr int kOrderThreads = 512;
constexpr int kShareBytes = kOrderThreads / kWarpThreads * 1024 + 1024 + 4096 * 12;
constexpr int kOrderBytes = 16384 * kWordBytes;

/// So many numbers for each tile of a row, of each of `rows`.
Slot scores_of(const EstimateParts& parts, const std::string& rows, int numbers) {
  return {"scores", units("(" + rows + ")", keep_k_tiles(parts.select), numbers * kWordBytes)};
}
/// Scratch of each block.
void add_scores(const EstimateParts& parts, int numbers, Kernel& kernel) {
  if (numbers > 0) kernel.slots.push_back(scores_of(parts, kernel.grid.expr, numbers));
}

Chosen<int> token_smem(const EstimateParts& parts) {
  const int head_dim = parts.plan.program.head_dim;
  return {estimate_block_smem_bytes(parts.estimate, parts.rows, head_dim), Origin::kDerived,
          estimate_block_smem_formula(parts.estimate, parts.rows, head_dim)};
}

int numbers_of_tokens(const EstimateParts& parts) {
  const bool orders_tiles = parts.keep.orders_tiles();
  return orders_tiles || parts.keep.keeps_first ? token_planes(orders_tiles) : 0;
}

int numbers_of_cells(const EstimateParts& parts) {
  const CellNumbers numbers = cell_numbers(parts);
  return cell_planes(parts.rows, numbers.log_sums, numbers.logits, parts.keep.orders_tiles());
}

/// Two where there is shared memory for them.
Chosen<int> blocks_of_cells(const EstimateParts& parts, int smem_bytes) {
  constexpr int kWidestOfTwo = 128;
  const bool has_means = parts.estimate.rows.kind == SummaryKind::kCellMean;
  if (!has_means && parts.plan.program.head_dim > kWidestOfTwo)
    return {1, Origin::kDerived, "antidiagonals of wide rows take the registers of two"};
  const Target& target = parts.plan.target;
  const bool fit = 2 * (smem_bytes + target.smem_bytes_reserved) <= target.smem_bytes_per_sm;
  return {fit ? 2 : 1, Origin::kDerived,
          std::string(fit ? "shared memory holds two" : "shared memory holds one")};
}

/// Does an index decide the same for all heads? It does not read q and k, which differ by head. So
/// it does, if no formula reads the head and nothing computed from tokens is used.
bool serves_all_heads(const EstimateParts& parts) {
  const Estimate& e = parts.estimate;
  const Select& select = parts.select;
  if (!e.is_indexed() || e.rows.kind == SummaryKind::kLast || e.within >= 0 || select.joins >= 0)
    return false;
  if (parts.keep.similar_q || parts.keep.similar_k) return false;
  const Expr* formulas[] = {&e.mask,         &e.exclude,   &e.index_q,  &e.index_k,
                            &e.index_weight, &select.mask, &select.keep};
  return std::ranges::none_of(formulas,
                              [](const Expr* formula) { return uses(*formula, Variable::kH); });
}

/// What is compared where that is not q and k.
void add_index(const EstimateParts& parts, Kernel& kernel) {
  if (!parts.estimate.is_indexed()) return;
  constexpr const char* kIndex = "/predictor/estimate/index";
  kernel.config.push_back(integer("kIndexHeads", parts.estimate.index_heads, kIndex));
  kernel.config.push_back(integer("kIndexDim", parts.estimate.index_dim, kIndex));
  if (serves_all_heads(parts)) kernel.config.push_back(boolean("kServesAllHeads", true, kIndex));
}

/// How cells are multiplied, as a type.
ConfigField product_of_cells(const EstimateParts& parts) {
  const Chosen<AttendFamily>& family = estimate_family_of(parts.plan, parts.step());
  const bool by_wgmma = family.value == AttendFamily::kWgmma;
  return {"using",  "Product",     by_wgmma ? "lacuna::CellsByWgmma" : "lacuna::CellsByMma",
          kNoField, family.origin, family.reason};
}

/// Shares of the keys of a head, of which a block takes one.
std::string key_shares(const EstimateParts& parts) {
  return "((" + ceil_divide(length_of(Tensor::kK), token_share_columns(parts.estimate.tile_k)) +
         "))";
}

Kernel share_kernel(const EstimateParts& parts, const char* name, const char* because,
                    const char* function) {
  const int keys = token_share_columns(parts.estimate.tile_k);
  Kernel kernel{.name = name,
                .because = because,
                .header = "select/tokens/last_rows.cuh",
                .function = function,
                .config = token_config(parts),
                .grid = {all_heads(Tensor::kQ) + " * " + key_shares(parts),
                         "one for each " + std::to_string(keys) + " keys of a head"},
                .threads = block_threads(),
                .smem_bytes = token_smem(parts)};
  add_index(parts, kernel);
  add_token_operands(parts, kernel);
  return kernel;
}

/// The tiles of a head by descending p: templates/select/tokens/order_last_rows.cuh.
Kernels order_kernels() {
  Kernel shares{
      .name = "order_shares",
      .because = "keep reads ranks",
      .header = "select/tokens/order_last_rows.cuh",
      .function = "order_shares",
      .config = {boolean("kOrdersTiles", true, "/predictor/keep")},
      .grid = {all_heads(Tensor::kQ) + " * " + std::to_string(kOrderShares),
               "each puts a share of a head's tiles in order"},
      .threads = {kOrderThreads, Origin::kDefault, "each round waits for memory"},
      .smem_bytes = {kShareBytes, Origin::kDefault,
                     "how many tiles of each warp have each digit, and a share of 4096 tiles"}};
  shares.operands.push_back("scores");
  Kernel order = shares;
  order.name = "order";
  order.because = "the shares of a head become one order";
  order.function = "order_last_rows";
  order.grid.reason = "one for each share of a head's tiles";
  order.smem_bytes = {kOrderBytes, Origin::kDefault, "keys of 16384 tiles"};
  return {std::move(shares), std::move(order)};
}

/// The last queries of each head: templates/select/tokens/last_rows.cuh.
Kernels last_row_kernels(const EstimateParts& parts) {
  const Normalise normalise = parts.estimate.normalise;
  const bool has_sums = normalise == Normalise::kSoftmax || normalise == Normalise::kRowMax ||
                        normalise == Normalise::kLse || parts.estimate.reduce == Reduce::kSum;
  Kernels kernels;
  if (has_sums) {
    Kernel sums = share_kernel(parts, "sums", "weights are relative to the mass of their row",
                               "predict_last_sums");
    sums.slots.push_back(
        {"row_sums", units(all_heads(Tensor::kQ), key_shares(parts), 2 * parts.rows * kWordBytes)});
    kernels.push_back(std::move(sums));
  }
  Kernel estimate = share_kernel(parts, "estimate", "the last queries are compared with keys",
                                 "predict_last_rows");
  if (has_sums) estimate.operands.push_back("row_sums");
  const bool orders_tiles = parts.keep.orders_tiles();
  estimate.slots.push_back(scores_of(parts, all_heads(Tensor::kQ), last_row_planes(orders_tiles)));
  kernels.push_back(std::move(estimate));
  if (orders_tiles)
    for (Kernel& kernel : order_kernels()) kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace

Kernels token_kernels(const EstimateParts& parts) {
  if (parts.estimate.rows.kind == SummaryKind::kLast) return last_row_kernels(parts);
  const int step = row_tokens(parts.estimate.rows, parts.estimate.tile_q).step;
  Kernel kernel{.name = "estimate",
                .because = parts.estimate.is_indexed() ? "index vectors of tokens are compared"
                           : step > 1 ? "some queries of each tile are compared with keys"
                                      : "queries are compared with keys",
                .header = "select/tokens/tokens.cuh",
                .function = "predict_tokens",
                .config = token_config(parts),
                .grid = striding_grid(parts, 1),
                .threads = block_threads(),
                .smem_bytes = token_smem(parts)};
  if (step > 1) kernel.config.push_back(integer("kRowStride", step, "/predictor/estimate/q"));
  add_index(parts, kernel);
  add_token_operands(parts, kernel);
  add_scores(parts, numbers_of_tokens(parts), kernel);  // few rows need none
  Kernels kernels = share_keys(parts, kernel);
  kernel.slots.push_back(kept_slot(parts.plan, parts.select));
  kernels.push_back(std::move(kernel));
  return kernels;
}

Kernels cell_kernels(const EstimateParts& parts) {
  const Estimate& estimate = parts.estimate;
  const bool has_means = estimate.rows.kind == SummaryKind::kCellMean;
  const bool by_wgmma = compares_by_wgmma(parts.plan, parts.step());
  const int head_dim = parts.plan.program.head_dim;
  Kernel kernel{.name = "estimate",
                .because = has_means ? "means of cells of queries are compared with those of keys"
                                     : "antidiagonals of queries are compared with those of keys",
                .header = "select/cells/cells.cuh",
                .function = "predict_cells",
                .config = token_config(parts),
                .grid = striding_grid(parts, estimate_cell_tiles(parts.estimate)),
                .threads = block_threads(),
                .smem_bytes = {cell_smem_bytes(estimate, by_wgmma, head_dim), Origin::kDerived,
                               cell_smem_formula(estimate, by_wgmma, head_dim)}};
  kernel.config.push_back(integer("kCellK", estimate.columns.count, "/predictor/estimate/k"));
  kernel.config.push_back(boolean("kCellsAreMeans", has_means, "/predictor/estimate/q"));
  if (by_wgmma) kernel.config.push_back(boolean("kByWgmma", true, "/predictor/estimate"));
  kernel.config.push_back(product_of_cells(parts));
  kernel.resident_blocks = blocks_of_cells(parts, kernel.smem_bytes.value);
  add_token_operands(parts, kernel);
  Kernels kernels = share_cells(parts, kernel);
  add_scores(parts, numbers_of_cells(parts), kernel);
  kernel.slots.push_back(kept_slot(parts.plan, parts.select));
  kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace lacuna
