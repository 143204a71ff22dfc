// An estimate of means of queries: with means of keys, or with the keys themselves.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "compiler/lower/predict/row_scores.hpp"
#include "compiler/spec/summary.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

/// Rows of templates/select/pooled/pooled.cuh that are longer than this holds lie in the workspace.
constexpr int kRowBytes = 40 << 10;

std::string digits_of(int number) { return std::to_string(number); }

Chosen<int> keys_smem(int head_dim) {
  return {pooled_tokens_smem_bytes(kBlockWarps, head_dim), Origin::kDerived,
          digits_of(kMeanRows) + " rows * (" + digits_of(kMeanFactors) + " factors * " +
              digits_of(head_dim) + " * 2 + 8 warps * " + digits_of(kMeanWarpWords) + " * 4 + " +
              digits_of(kMeanRowBytes) + ")"};
}

Chosen<int> means_smem(int length, bool reads_score) {
  return {pooled_means_smem_bytes(kBlockWarps, length, reads_score), Origin::kDerived,
          "(" + digits_of(kMeanRows) + " rows * (" + digits_of(length) + " + " +
              digits_of(kMeanPad) + " + " + digits_of(kMostWarpTiles) + " + " +
              digits_of(kMeanLogitPad) + ") + 8 warps * " +
              digits_of(pooled_means_warp_words(reads_score)) + ") * 4"};
}

bool has_bounds(const EstimateParts& parts) {
  return parts.estimate.columns.kind == SummaryKind::kMinMax;
}

Chosen<int> pooled_smem(const EstimateParts& parts, EstimateKernel kind) {
  const int head_dim = parts.plan.program.head_dim;
  if (kind == EstimateKernel::kKeys) return keys_smem(head_dim);
  if (are_tokens(parts.estimate.columns.kind))
    return {kRowBytes, Origin::kDefault, "longer work tiles lie in the workspace"};
  return means_smem(has_bounds(parts) ? 2 * head_dim : head_dim, parts.keep.score);
}

std::vector<ConfigField> pooled_config(const EstimateParts& parts, EstimateKernel kind) {
  const Estimate& estimate = parts.estimate;
  const bool has_tokens = are_tokens(estimate.columns.kind);
  std::vector<ConfigField> fields = {
      predictor_tile_q(estimate.tile_q), predictor_tile_k(estimate.tile_k),
      boolean("kColumnsAreTokens", has_tokens, "/predictor/estimate/k"),
      boolean("kDecidesKeys", kind == EstimateKernel::kKeys, kNoField, Origin::kDerived,
              "a key is a tile of its own, and keep asks for no order")};
  if (has_bounds(parts)) {
    fields.push_back(boolean("kColumnsAreBounds", true, "/predictor/estimate/k"));
    if (parts.plan.program.batch != BatchLayout::kUniform)
      fields.push_back(integer("kOwnKeys", 0, kNoField, Origin::kDerived,
                               "bounds and the arguments of a sequence take the registers"));
  }
  add_estimate_config(parts, fields);
  return fields;
}

Chosen<int> pooled_blocks(const EstimateParts& parts, EstimateKernel kind) {
  const bool has_tokens = are_tokens(parts.estimate.columns.kind);
  if (kind == EstimateKernel::kMeans && has_tokens) return one_resident_block();
  constexpr int kWidestBounds = 128;  // whose rows leave registers for a second block
  if (has_bounds(parts) && parts.plan.program.head_dim > kWidestBounds)
    return {1, Origin::kDerived, "the rows of bounds take the registers of two"};
  return {2, Origin::kDerived, "one computes while the other waits for loads"};
}

}  // namespace

Kernels pooled_kernels(const EstimateParts& parts) {
  const EstimateKernel kind = estimate_kernel(parts.plan, parts.step());
  const bool has_tokens = are_tokens(parts.estimate.columns.kind);
  Kernel kernel{.name = "estimate",
                .because = kind == EstimateKernel::kKeys
                               ? "means of queries decide about single keys"
                           : has_tokens        ? "means of queries are compared with keys"
                           : has_bounds(parts) ? "means of queries are compared with bounds of keys"
                                               : "means of queries are compared with means of keys",
                .header = "select/pooled/pooled.cuh",
                .function = "predict_pooled",
                .config = pooled_config(parts, kind),
                .grid = striding_grid(parts, parts.rows),
                .threads = block_threads(),
                .smem_bytes = pooled_smem(parts, kind),
                .resident_blocks = pooled_blocks(parts, kind),
                .operands = {"q_summary", has_tokens ? "k" : "k_summary"}};
  add_similarity_operands(parts, kernel);
  if (!has_tokens) {
    read_row_scores(parts.plan, kernel);
    add_kept_summaries(parts.plan, kernel);
  }
  if (kind == EstimateKernel::kMeans) {
    const int numbers = pooled_planes(parts.rows, parts.keep.orders_tiles());
    kernel.slots.push_back({"scores", units("(" + kernel.grid.expr + ")",
                                            keep_k_tiles(parts.select), numbers * kWordBytes)});
  }
  kernel.slots.push_back(kept_slot(parts.plan, parts.select));
  return {kernel};
}

}  // namespace lacuna
