// means, merge_branch: keys and values of a branch over means, and the sum of branches.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {
namespace {

/// Contiguous arrays of means. Strides are means (times the width of a row).
constexpr Argument kMeanK[] = {{"k.data", FieldSource::kWorkspace, "k_means"},
                               {"k.stride_b", FieldSource::kScaledValue, "means_of_heads"},
                               {"k.stride_h", FieldSource::kScaledValue, "means"},
                               {"k.stride_n", FieldSource::kConstant, ""}};
constexpr Argument kMeanV[] = {{"v.data", FieldSource::kWorkspace, "v_means"},
                               {"v.stride_b", FieldSource::kScaledValue, "means_of_heads"},
                               {"v.stride_h", FieldSource::kScaledValue, "means"},
                               {"v.stride_n", FieldSource::kConstant, ""}};
/// Results of attend, contiguous.
constexpr Argument kBranchO[] = {{"o.data", FieldSource::kWorkspace, "branch_o"},
                                 {"o.stride_b", FieldSource::kScaledValue, "rows_of_heads"},
                                 {"o.stride_h", FieldSource::kScaledValue, "rows"},
                                 {"o.stride_n", FieldSource::kConstant, ""}};
constexpr Argument kBranchLse[] = {{"lse.data", FieldSource::kWorkspace, "branch_lse"},
                                   {"lse.stride_b", FieldSource::kScaledValue, "rows_of_heads"},
                                   {"lse.stride_h", FieldSource::kScaledValue, "rows"}};

/// A thread has `elements` of a row.
ShapeExpr rows_grid(Tensor tensor, int width, int elements, const char* rows) {
  const int count = kBlockThreads / (width / elements);
  return {blocks_over(tensor, count),
          "one for each " + std::to_string(count) + " " + rows + " of a head"};
}

Kernel means_kernel(const Plan& plan, Tensor tensor, int tokens) {
  const bool is_key = tensor == Tensor::kK;
  const int width = is_key ? plan.program.head_dim : value_dim(plan.program);
  Kernel kernel{.name = is_key ? "means_k" : "means_v",
                .because = "the branch attends to means of " + std::string(name_of(tensor)),
                .header = "prepare/means.cuh",
                .function = "token_means",
                .config = {tensor_field(tensor), integer("kTokens", tokens, "/means")},
                .grid = rows_grid(tensor, width, kMeanElements, "means"),
                .threads = block_threads(),
                .smem_bytes = no_smem(),
                .operands = {is_key ? "caller_k" : "caller_v"},
                .slots = {{is_key ? "k_means" : "v_means",
                           units(all_heads(tensor), length_of(tensor), width * kElementBytes)}}};
  if (is_key) {
    kernel.arguments.assign(std::begin(kMeanK), std::end(kMeanK));
    kernel.sizes = {{"means", "n_k"}, {"means_of_heads", "n_h_kv * n_k"}};
  } else {
    kernel.arguments.assign(std::begin(kMeanV), std::end(kMeanV));
  }
  return kernel;
}

std::vector<Slot> merge_slots(const MergeBranch& merge, int width) {
  const std::string heads = all_heads(Tensor::kQ);
  std::vector<Slot> slots = {{"sum_o", units(heads, "n_q", width * kWordBytes), false, true}};
  if (merge.weight.empty())
    slots.push_back({"sum_lse", units("2 * " + heads, "n_q", kWordBytes), false, true});
  return slots;
}

}  // namespace

Kernels lower_means(const Plan& plan) {
  const auto* means = find_op<Means>(plan.program);
  if (means == nullptr) return {};
  return {means_kernel(plan, Tensor::kK, means->tokens),
          means_kernel(plan, Tensor::kV, means->tokens)};
}

Kernels lower_merge_branch(const Plan& plan) {
  const auto* merge = find_op<MergeBranch>(plan.program);
  if (merge == nullptr) return {};
  const int width = value_dim(plan.program);
  Kernel kernel{.name = "merge_branch",
                .because = "branch " + std::to_string(merge->index + 1) + " of " +
                           std::to_string(merge->count) + " joins the sum of those before",
                .header = "attend/merge_branch.cuh",
                .function = "merge_branch",
                .config = {integer("kBranch", merge->index, kNoField, Origin::kDerived,
                                   "place among the branches of the spec"),
                           integer("kBranches", merge->count, kNoField, Origin::kDerived,
                                   "branches of the spec"),
                           boolean("kHasWeight", !merge->weight.empty(), "/weight")},
                .grid = rows_grid(Tensor::kQ, width, kMergedElements, "tokens"),
                .threads = block_threads(),
                .smem_bytes = no_smem(),
                .operands = {"branch_o"},
                .slots = merge_slots(*merge, width),
                .sizes = {{"rows", "n_q"}, {"rows_of_heads", "n_h * n_q"}},
                .needs_keys = false};
  kernel.arguments.assign(std::begin(kBranchO), std::end(kBranchO));
  if (merge->weight.empty()) {
    kernel.operands.push_back("branch_lse");
    kernel.arguments.insert(kernel.arguments.end(), std::begin(kBranchLse), std::end(kBranchLse));
    if (merge->lse_base == LseBase::k2)
      kernel.config.push_back(boolean("kLseIsBase2", true, "/attention/lse_base"));
  }
  if (merge->is_last()) {
    kernel.operands.push_back("caller_o");
    if (merge->weight.empty()) kernel.operands.push_back("caller_lse");
  }
  return {kernel};
}

}  // namespace lacuna
