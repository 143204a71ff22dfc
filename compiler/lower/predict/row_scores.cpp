#include "compiler/lower/predict/row_scores.hpp"

#include <algorithm>
#include <string_view>

#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "compiler/lower/token_ops.hpp"
#include "compiler/spec/table/bands.hpp"
#include "templates/shared/estimate_block.cuh"
#include "templates/shared/prepare_block.cuh"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

/// The one estimate whose columns are summaries of key tiles; null: there is none, or several.
const Estimate* scored_estimate(const Plan& plan) {
  const Estimate* found = nullptr;
  for (const PredictStep& step : predict_steps(plan.program)) {
    if (step.estimate == nullptr || estimate_kernel(plan, step) != EstimateKernel::kMeans) continue;
    if (are_tokens(step.estimate->columns.kind)) continue;
    if (found != nullptr) return nullptr;
    found = step.estimate;
  }
  return found;
}

ConfigField scores_few_rows() {
  return boolean("kScoresFewRows", true, kNoField, Origin::kDerived,
                 "a row is decided by one block: of few rows many multiply");
}

/// What of an estimate's Config the kernel that counts its scores asks for.
constexpr std::string_view kFieldsOfShares[] = {"kTileQ", "kTileK",          "kHasMask",
                                                "kStep",  "kServesAllHeads", "kSharesKeys"};

/// Rows of tokens that blocks share.
std::string few_rows(const EstimateParts& parts, const Kernel& estimate) {
  const bool serves_all_heads = std::ranges::any_of(
      estimate.config, [](const ConfigField& field) { return field.name == "kServesAllHeads"; });
  const std::string tiles = tiles_of(Tensor::kQ, parts.estimate.tile_q);
  return "n_b * " + at_most(serves_all_heads ? tiles : "n_h * (" + tiles + ")", kFewTokenRows);
}

/// Keys of a share, and shares of a row.
int share_keys_of(const EstimateParts& parts) { return token_share_columns(parts.estimate.tile_k); }
std::string shares_of(const EstimateParts& parts) {
  return "(" + ceil_divide(length_of(Tensor::kK), share_keys_of(parts)) + ")";
}

/// The kernel that compares a share.
Kernel compare_shares(const EstimateParts& parts, const Kernel& estimate) {
  Kernel shares = estimate;
  shares.name = "share_keys";
  shares.because = "blocks share the keys of few rows";
  shares.header = "select/tokens/key_shares.cuh";
  shares.function = "predict_key_shares";
  shares.grid = {few_rows(parts, estimate) + " * " + shares_of(parts),
                 "one for each " + std::to_string(share_keys_of(parts)) +
                     " keys of a row, of up to " + std::to_string(kFewTokenRows)};
  shares.slots = {{"row_scores", units("n_b", tiles_of(Tensor::kK, parts.estimate.tile_k),
                                       kFewTokenRows * kWordBytes)}};
  const Estimate& index = parts.estimate;
  if (!index.is_indexed()) return shares;
  shares.smem_bytes = {
      index_share_smem_bytes(parts.rows, index.index_heads, index.index_dim, index.tile_k),
      Origin::kDerived, "index vectors of a tile's queries, as far as there is room; scores"};
  constexpr int kWidestOfTwo = 64;  // elements of a vector
  if (index.index_dim <= kWidestOfTwo)
    shares.resident_blocks = {2, Origin::kDerived, "one multiplies while the other waits for keys"};
  return shares;
}

/// The bins of few rows, each with a range for every share.
Slot bins_of(const EstimateParts& parts) {
  const std::string pairs = "(" + shares_of(parts) + " + 1) // 2";
  return {"row_bins",
          units("n_b * " + std::to_string(kFewTokenRows),
                "(" + std::to_string(kRowBinsWords / 4) + " + " + pairs + ")", 4 * kWordBytes)};
}

/// Blocks that decide about shares of few rows.
ShapeExpr decided_shares(const EstimateParts& parts, const Kernel& estimate) {
  return {few_rows(parts, estimate) + " * (" +
              ceil_divide(tiles_of(Tensor::kK, parts.estimate.tile_k), kShareTiles) + ")",
          "one for each " + std::to_string(kShareTiles) + " tiles of a row, of up to " +
              std::to_string(kFewTokenRows)};
}

}  // namespace

void add_row_scores(const Plan& plan, Kernel& kernel) {
  const Estimate* estimate = scored_estimate(plan);
  if (estimate == nullptr) return;
  kernel.config.push_back(scores_few_rows());
  if (estimate->columns.kind == SummaryKind::kMinMax)
    kernel.config.push_back(boolean("kColumnsAreBounds", true, "/predictor/estimate/k"));
  kernel.config.push_back(
      number("kTemperature", estimate->temperature, "/predictor/estimate/temperature"));
  if (const auto steps = band_steps(estimate->dims))
    kernel.config.push_back(integer("kDims", static_cast<int>(*steps), "/predictor/estimate/dims"));
  kernel.operands.push_back("q_summary");
  kernel.slots.push_back(
      {"row_scores", units(all_heads(Tensor::kK), tiles_of(Tensor::kK, estimate->tile_k),
                           kFewRows * kWordBytes)});
}

void add_kept_summaries(const Plan& plan, Kernel& kernel) {
  if (kept_summaries(plan.program) == nullptr) return;
  kernel.config.push_back(boolean("kKeepsSummaries", true, kNoField, Origin::kDerived,
                                  "a summary follows from the keys of its tile alone"));
}

void make_kept_summaries(const Plan& plan, Kernel& kernel) {
  const Summarise* summary = kept_summaries(plan.program);
  if (summary == nullptr) return;
  add_kept_summaries(plan, kernel);
  constexpr int kBlocksOfSm = 4;
  const int keys = summary->tile * kKnownTiles * kernel.threads.value / 32;
  const std::string few = std::to_string(kBlocksOfSm) + " * sm_count";
  const std::string of_sequence = "(" + few + " + max(n_sequences, 1) - 1) // max(n_sequences, 1)";
  const bool is_uniform = plan.program.batch == BatchLayout::kUniform;
  kernel.kept_grid = {"min(" + kernel.grid.expr + ", max(" + (is_uniform ? few : of_sequence) +
                          ", " + blocks_over(Tensor::kK, keys) + "))",
                      "one for each " + std::to_string(keys) +
                          " keys of a head whose summaries are there, or " +
                          std::to_string(kBlocksOfSm) + " of a multiprocessor"};
}

void read_row_scores(const Plan& plan, Kernel& kernel) {
  if (scored_estimate(plan) == nullptr) return;
  kernel.config.push_back(scores_few_rows());
  kernel.operands.push_back("row_scores");
}

Kernels share_keys(const EstimateParts& parts, Kernel& estimate) {
  const bool stores_p = parts.keep.orders_tiles() || parts.keep.keeps_first;
  const bool is_plain = parts.estimate.normalise == Normalise::kNone &&
                        parts.estimate.reduce == Reduce::kMax && !parts.keep.score;
  if (!stores_p || !is_plain || scored_estimate(parts.plan) != nullptr) return {};
  estimate.config.push_back(boolean("kSharesKeys", true, kNoField, Origin::kDerived,
                                    "a row is decided by one block: of few rows many compare"));
  Kernels kernels = {compare_shares(parts, estimate)};
  estimate.operands.push_back("row_scores");
  if (!parts.keep.keeps_first) return kernels;
  kernels.front().slots.push_back(bins_of(parts));
  estimate.operands.push_back("row_bins");
  const ShapeExpr decided = decided_shares(parts, estimate);
  Kernel counts = estimate;
  counts.name = "count_scores";
  counts.because = "blocks share the decision about few rows";
  counts.header = "select/tokens/key_shares.cuh";
  counts.function = "count_row_scores";
  counts.grid = decided;
  counts.slots.clear();
  std::erase_if(counts.config, [](const ConfigField& field) {
    return std::ranges::count(kFieldsOfShares, field.name) == 0;
  });
  kernels.push_back(counts);
  estimate.grid.expr = "max(" + estimate.grid.expr + ", " + decided.expr + ")";
  estimate.grid.reason += ", or " + decided.reason;
  return kernels;
}

CellNumbers cell_numbers(const EstimateParts& parts) {
  const Normalise normalise = parts.estimate.normalise;
  const bool sums = parts.estimate.reduce == Reduce::kSum;
  return {.log_sums = normalise == Normalise::kSoftmax || sums,
          .logits = parts.keep.score || !sums || normalise == Normalise::kNone};
}

Kernels share_cells(const EstimateParts& parts, Kernel& estimate) {
  if (scored_estimate(parts.plan) != nullptr) return {};  // its scores lie in the same memory
  estimate.config.push_back(boolean("kSharesCells", true, kNoField, Origin::kDerived,
                                    "a head is a matrix of its own: of few rows many multiply"));
  const Estimate& cells = parts.estimate;
  const int keys = cell_share_columns(cells.tile_k / cells.columns.count) * cells.columns.count;
  Kernel shares = estimate;
  shares.name = "share_keys";
  shares.because = "blocks share the keys of few rows";
  shares.header = "select/cells/cell_shares.cuh";
  shares.function = "predict_cell_shares";
  std::erase_if(shares.config, [](const ConfigField& field) { return field.name == "Product"; });
  shares.grid = {all_heads(Tensor::kK) + " * (" + ceil_divide(length_of(Tensor::kK), keys) + ")",
                 "one for each " + std::to_string(keys) + " keys of a KV head"};
  if (parts.plan.program.batch == BatchLayout::kUniform) {
    const std::string most = std::to_string(kFewCellRows * cells.rows.count);
    shares.grid.expr += " * min(max(" + most + " + 1 - n_q, 0), 1)";
    shares.grid.reason += "; none of more than " + most + " queries";
  }
  shares.smem_bytes = no_smem();
  shares.resident_blocks = {2, Origin::kDerived, "one multiplies while the other waits for keys"};
  const CellNumbers numbers = cell_numbers(parts);
  const int bytes = (numbers.log_sums + numbers.logits) * kFewCellRows * kWordBytes;
  shares.slots = {{"row_scores", units(all_heads(Tensor::kQ), keep_k_tiles(parts.select), bytes)}};
  estimate.operands.push_back("row_scores");
  return {shares};
}

}  // namespace lacuna
