#include "compiler/lower/predict/row_scores.hpp"

#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "compiler/spec/table/bands.hpp"
#include "templates/shared/estimate_block.cuh"
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

void read_row_scores(const Plan& plan, Kernel& kernel) {
  if (scored_estimate(plan) == nullptr) return;
  kernel.config.push_back(scores_few_rows());
  kernel.operands.push_back("row_scores");
}

Kernels share_keys(const EstimateParts& parts, Kernel& estimate) {
  const bool stores_p = parts.keep.orders_tiles() || parts.keep.keeps_first;
  const bool is_plain = parts.estimate.normalise == Normalise::kNone &&
                        parts.estimate.reduce == Reduce::kMax && !parts.keep.score;
  if (!stores_p || !is_plain) return {};
  estimate.config.push_back(boolean("kSharesKeys", true, kNoField, Origin::kDerived,
                                    "a row is decided by one block: of few rows many compare"));
  const int keys = token_share_columns(parts.estimate.tile_k);
  Kernel shares = estimate;
  shares.name = "share_keys";
  shares.because = "blocks share the keys of few rows";
  shares.header = "select/tokens/key_shares.cuh";
  shares.function = "predict_key_shares";
  shares.grid = {"n_b * " + std::to_string(kFewTokenRows) + " * (" +
                     ceil_divide(length_of(Tensor::kK), keys) + ")",
                 "one for each " + std::to_string(keys) + " keys of a row, of up to " +
                     std::to_string(kFewTokenRows)};
  shares.slots = {{"row_scores", units("n_b", tiles_of(Tensor::kK, parts.estimate.tile_k),
                                       kFewTokenRows * kWordBytes)}};
  estimate.operands.push_back("row_scores");
  return {shares};
}

}  // namespace lacuna
