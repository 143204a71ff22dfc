// estimate, and the select that follows where the estimate's kernel decides by itself: which
// kernels they are, and what these have in common.
#include "compiler/expr/text/parse.hpp"
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/predict/estimate_family.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "compiler/lower/token_ops.hpp"
#include "compiler/spec/table/bands.hpp"
#include "compiler/target/estimate_block.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

/// Integers that the estimate shares with attend.
constexpr Argument kSharedQ[] = {
    {"estimate_q_values", FieldSource::kWorkspace, "q_values"},
    {"estimate_q_scale", FieldSource::kWorkspace, "q_scale"},
    {"estimate_q_groups", FieldSource::kValue, "q_groups"},
};
constexpr Argument kSharedK[] = {
    {"estimate_k_values", FieldSource::kWorkspace, "k_values"},
    {"estimate_k_scale", FieldSource::kWorkspace, "k_scale"},
    {"estimate_k_groups", FieldSource::kValue, "k_groups"},
};

/// Where the estimate finds its integers.
void add_shared_arguments(const EstimateParts& parts, Kernel& kernel) {
  if (parts.estimate.q_scale < 0) return;
  const auto add = [&](Tensor tensor, const auto& shared) {
    if (token_ops(parts.plan.program, tensor).estimate_quantise == nullptr)
      kernel.arguments.insert(kernel.arguments.end(), std::begin(shared), std::end(shared));
  };
  add(Tensor::kQ, kSharedQ);
  add(Tensor::kK, kSharedK);
}

Kernels estimate_kernels(EstimateKernel kind, const EstimateParts& parts) {
  switch (kind) {
    case EstimateKernel::kGiven:
      return given_kernels(parts);
    case EstimateKernel::kMeans:
    case EstimateKernel::kKeys:
      return pooled_kernels(parts);
    case EstimateKernel::kTokens:
      return token_kernels(parts);
    case EstimateKernel::kCells:
      return cell_kernels(parts);
    case EstimateKernel::kPairs:
      return token_pair_kernels(parts);
    case EstimateKernel::kSoftmax:
      return token_softmax_kernels(parts);
    case EstimateKernel::kExact:
      return exact_kernels(parts);
  }
  return {};
}

}  // namespace

EstimateKernel estimate_kernel(const Plan& plan, const PredictStep& step) {
  const Estimate* estimate = step.estimate;
  if (estimate->is_given()) return EstimateKernel::kGiven;
  if (estimates_pairs(plan, step)) return EstimateKernel::kPairs;
  if (estimates_softmax(plan, step)) return EstimateKernel::kSoftmax;
  if (has_cells(estimate->rows)) return EstimateKernel::kCells;
  if (compares_by_wgmma(plan, step)) return EstimateKernel::kExact;
  if (estimate->rows.kind != SummaryKind::kMean) return EstimateKernel::kTokens;
  if (estimate->columns.kind != SummaryKind::kTokens || estimate->tile_k > 1)
    return EstimateKernel::kMeans;
  const KeepQuestion keep = keep_question(plan, step);
  return keep.orders_tiles() || keep.keeps_first ? EstimateKernel::kMeans : EstimateKernel::kKeys;
}

Kernels lower_estimate(const Plan& plan, const PredictStep& step) {
  const EstimateKernel kind = estimate_kernel(plan, step);
  const int rows = kind == EstimateKernel::kKeys ? kMeanRows : estimate_rows(*step.estimate);
  const EstimateParts parts{plan, *step.estimate, *step.select, keep_question(plan, step), rows};
  Kernels kernels = estimate_kernels(kind, parts);
  for (Kernel& kernel : kernels) {
    kernel.decides = true;
    add_shared_arguments(parts, kernel);
    add_step(plan, step, kernel);
  }
  return kernels;
}

void add_step(const Plan& plan, const PredictStep& step, Kernel& kernel) {
  const Attend& attend = attend_of(plan.program);
  add_pair_fields(attend, *step.select, kernel.config);
  if (attend.pairs) kernel.operands.push_back("tile_classes");
  if (step.select->within >= 0 || step.select->joins >= 0) kernel.operands.push_back("kept_before");
  if (step.select == last_step(plan.program).select) return;
  kernel.name += "_before";
  kernel.hooks = "HooksBefore";
}

void add_estimate_config(const EstimateParts& parts, std::vector<ConfigField>& fields) {
  const Estimate& estimate = parts.estimate;
  fields.push_back(
      integer("kRows", parts.rows, kNoField, Origin::kDerived, "that a block takes together"));
  fields.push_back(enumerator("Normalise", "kNormalise", normalise_name(estimate.normalise),
                              "/predictor/estimate/normalise"));
  fields.push_back(number("kTemperature", estimate.temperature, "/predictor/estimate/temperature"));
  if (const auto steps = band_steps(estimate.dims))
    fields.push_back(integer("kDims", static_cast<int>(*steps), "/predictor/estimate/dims"));
  fields.push_back(boolean("kSums", estimate.reduce == Reduce::kSum, "/predictor/estimate/reduce"));
  fields.push_back(has_mask(estimate.mask));
  fields.push_back(
      boolean("kHasExclude", !estimate.exclude.empty(), "/predictor/estimate/exclude"));
  for (ConfigField& field : keep_config(parts.keep)) fields.push_back(std::move(field));
}

std::vector<ConfigField> token_config(const EstimateParts& parts) {
  const Estimate& estimate = parts.estimate;
  const bool is_last = estimate.rows.kind == SummaryKind::kLast;
  constexpr const char *kRows = "/predictor/estimate/q", *kSmooth = "/predictor/smooth";
  std::vector<ConfigField> fields = {
      predictor_tile_q(estimate.tile_q),
      predictor_tile_k(estimate.tile_k),
      integer("kCell", has_cells(estimate.rows) ? estimate.rows.count : 1, kRows),
      integer("kLastRows", is_last ? estimate.rows.count : 0, kRows),
      integer("kBits", estimate.bits, "/predictor/estimate/bits"),
      enumerator("QuantGroup", "kGroup", group_name(estimate.group), "/predictor/estimate/group"),
      boolean("kHasRowBias", estimate.row_bias >= 0, kSmooth),
      boolean("kHasColumnBias", estimate.column_bias >= 0, kSmooth)};
  add_estimate_config(parts, fields);
  return fields;
}

void add_token_operands(const EstimateParts& parts, Kernel& kernel) {
  const Estimate& estimate = parts.estimate;
  const auto add = [&](bool is_read, std::initializer_list<std::string_view> names) {
    if (is_read) kernel.operands.insert(kernel.operands.end(), names);
  };
  const auto has_own = [&](Tensor tensor) {
    return token_ops(parts.plan.program, tensor).estimate_quantise != nullptr;
  };
  const bool is_quantised = estimate.q_scale >= 0;
  const bool is_exact = estimate.normalise == Normalise::kLse;
  const bool has_means = estimate.rows.kind == SummaryKind::kCellMean;
  add(has_means, {"q_cells", "k_cells"});
  const bool has_tokens = !is_quantised && !has_means && !estimate.is_indexed();
  add(has_tokens || is_exact, {"q", "k"});
  add(is_quantised && has_own(Tensor::kQ), {"estimate_q_values", "estimate_q_scale"});
  add(is_quantised && !has_own(Tensor::kQ), {"q_values", "q_scale"});
  add(is_quantised && has_own(Tensor::kK), {"estimate_k_values", "estimate_k_scale"});
  add(is_quantised && !has_own(Tensor::kK), {"k_values", "k_scale"});
  add(estimate.row_bias >= 0, {"row_bias"});
  add(estimate.column_bias >= 0, {"column_bias"});
  add(estimate.previous_lse >= 0, {"previous_lse"});
  add_similarity_operands(parts, kernel);
}

void add_similarity_operands(const EstimateParts& parts, Kernel& kernel) {
  if (parts.keep.similar_q) kernel.operands.push_back("q_similarity");
  if (parts.keep.similar_k) kernel.operands.push_back("k_similarity");
}

ShapeExpr striding_grid(const EstimateParts& parts, int q_tiles) {
  const int queries = parts.estimate.tile_q * q_tiles;
  return {at_most(blocks_over(Tensor::kQ, queries), kMostBlocks),
          "one for each " + std::to_string(queries) + " queries of a head, up to " +
              std::to_string(kMostBlocks) + " that take several one after the other"};
}

Slot kept_slot(const Plan& plan, const Select& select) {
  const bool is_last = &select == last_step(plan.program).select;
  return {is_last ? "kept" : "kept_before",
          units(all_heads(Tensor::kQ),
                "(" + keep_q_tiles(select) + ") * (" + keep_words(select) + ")", kWordBytes)};
}

}  // namespace lacuna
