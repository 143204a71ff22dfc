// select, where no kernel of the estimate decides: static patterns, and one order of tiles for all
// rows of a head.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"

namespace lacuna {
namespace {

/// Scratch, and the bits of a row that takes its first tiles of an order: those of longer rows are
/// worked on in the workspace.
constexpr int kSelectBytes = 16 << 10;

std::vector<ConfigField> select_config(const Select& select, const KeepQuestion& keep,
                                       bool has_estimate) {
  std::vector<ConfigField> fields = {
      predictor_tile_q(select.tile_q), predictor_tile_k(select.tile_k),
      boolean("kHasEstimate", has_estimate, "/predictor/estimate"), has_mask(select.mask),
      boolean("kKeepsFirstInOrder", keep.keeps_first_in_order, "/predictor/keep")};
  for (ConfigField& field : keep_config(keep)) fields.push_back(std::move(field));
  return fields;
}

/// The select of a step whose estimate does not decide by itself.
Kernels lower_select(const Plan& plan, const PredictStep& step) {
  const auto [select, estimate] = step;
  const KeepQuestion keep = keep_question(plan, step);
  Kernel kernel{
      .name = "select",
      .because = estimate == nullptr ? "keep is asked about each tile"
                                     : "all rows of a head share one estimate",
      .header = "select/keep/select.cuh",
      .function = "select_rows",
      .config = select_config(*select, keep, estimate != nullptr),
      .grid = {blocks_over(Tensor::kQ, select->tile_q), "one for each query tile of the predictor"},
      .threads = block_threads(),
      .smem_bytes = {kSelectBytes, Origin::kDefault,
                     "scratch and bits of a row; longer rows lie in the workspace"},
      .slots = {kept_slot(plan, *select)},
      .decides = true};
  if (estimate != nullptr) kernel.operands.push_back("scores");
  if (keep.similar_q) kernel.operands.push_back("q_similarity");
  if (keep.similar_k) kernel.operands.push_back("k_similarity");
  add_step(plan, step, kernel);
  return {kernel};
}

}  // namespace

Kernels lower_steps(const Plan& plan) {
  Kernels kernels;
  for (const PredictStep& step : predict_steps(plan.program)) {
    const Estimate* estimate = step.estimate;
    if (estimate != nullptr) append_kernels(kernels, lower_estimate(plan, step));
    if (estimate == nullptr || estimate->rows.kind == SummaryKind::kLast)
      append_kernels(kernels, lower_select(plan, step));
  }
  return kernels;
}

}  // namespace lacuna
