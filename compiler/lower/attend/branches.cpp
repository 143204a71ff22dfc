// means, merge_branch: keys and values of a branch over means, and the sum of branches.
#include <span>

#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {
namespace {

/// Contiguous arrays of means, in the slot that means_names says. Strides are means (times the
/// width of a row).
constexpr Argument kMeanQ[] = {{"q.data", FieldSource::kWorkspace, ""},
                               {"q.stride_b", FieldSource::kScaledValue, "q_means_of_heads"},
                               {"q.stride_h", FieldSource::kScaledValue, "q_means_of_head"},
                               {"q.stride_n", FieldSource::kConstant, ""}};
constexpr Argument kMeanK[] = {{"k.data", FieldSource::kWorkspace, ""},
                               {"k.stride_b", FieldSource::kScaledValue, "means_of_heads"},
                               {"k.stride_h", FieldSource::kScaledValue, "means"},
                               {"k.stride_n", FieldSource::kConstant, ""}};
constexpr Argument kMeanV[] = {{"v.data", FieldSource::kWorkspace, ""},
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

/// A thread has `elements` of a row; `rows` of each of `heads`.
ShapeExpr rows_grid(const std::string& heads, const std::string& rows, int width, int elements,
                    const char* what) {
  const int count = kBlockThreads / (width / elements);
  return {heads + " * (" + ceil_divide(rows, count) + ")",
          "one for each " + std::to_string(count) + " " + what + " of a head"};
}

/// Of the means of a tensor: the kernel that makes them, the slot of the workspace that holds them,
/// the tensor of the caller that they are made of, and the field of the spec that asks for them.
struct MeansNames {
  const char *kernel, *slot, *operand, *pointer;
  std::span<const Argument> arguments;
  std::vector<NamedSize> sizes;
};

MeansNames means_names(Tensor tensor, int tokens) {
  if (tokens == 1 && tensor == Tensor::kK)
    return {"numbers_k", "k_numbers", "caller_k",
            kNoField,    kMeanK,      {{"means", "n_k"}, {"means_of_heads", "n_h_kv * n_k"}}};
  if (tokens == 1) return {"numbers_v", "v_numbers", "caller_v", kNoField, kMeanV, {}};
  if (tensor == Tensor::kQ)
    return {"means_q",  "q_means",
            "caller_q", "/query_means",
            kMeanQ,     {{"q_means_of_head", "n_q"}, {"q_means_of_heads", "n_h * n_q"}}};
  if (tensor == Tensor::kK)
    return {"means_k", "k_means", "caller_k",
            "/means",  kMeanK,    {{"means", "n_k"}, {"means_of_heads", "n_h_kv * n_k"}}};
  return {"means_v", "v_means", "caller_v", "/means", kMeanV, {}};
}

Kernel means_kernel(const Plan& plan, Tensor tensor, int tokens) {
  const int width = tensor == Tensor::kV ? value_dim(plan.program) : plan.program.head_dim;
  const char* length = length_of(tensor);
  MeansNames names = means_names(tensor, tokens);
  const std::string name(name_of(tensor));
  Kernel kernel{.name = names.kernel,
                .because = tokens == 1            ? "16-bit rows are made of the codes of " + name
                           : tensor == Tensor::kQ ? "means of q attend in the branch"
                                                  : "the branch attends to means of " + name,
                .header = "prepare/means.cuh",
                .function = "token_means",
                .config = {tensor_field(tensor), integer("kTokens", tokens, names.pointer)},
                .grid = rows_grid(all_heads(tensor), length, width, kMeanElements, "means"),
                .threads = block_threads(),
                .smem_bytes = no_smem(),
                .operands = {names.operand},
                .slots = {{names.slot, units(all_heads(tensor), length, width * kElementBytes)}},
                .sizes = std::move(names.sizes),
                .needs_keys = tensor != Tensor::kQ};
  if (plan.program.kv == KvFormat::kE4M3 && tensor != Tensor::kQ) add_code_field(kernel.config);
  if (find_op<Permute>(plan.program) != nullptr) kernel.operands.push_back("order");
  kernel.arguments.assign(names.arguments.begin(), names.arguments.end());
  kernel.arguments.front().name = names.slot;
  return kernel;
}

/// Query tokens of each head. If queries are means, the most tokens that these can stand for.
std::string merged_rows(const MergeBranch& merge) {
  return merge.queries > 1 ? "n_q * " + std::to_string(merge.queries) : "n_q";
}

std::vector<Slot> merge_slots(const MergeBranch& merge, int width) {
  const std::string heads = all_heads(Tensor::kQ);
  std::vector<Slot> slots = {
      {"sum_o", units(heads, merged_rows(merge), width * kWordBytes), false, SlotRegion::kShared}};
  if (merge.weight.empty())
    slots.push_back(
        {"sum_lse", units("2 * " + heads, "n_q", kWordBytes), false, SlotRegion::kShared});
  return slots;
}

}  // namespace

Kernels lower_means(const Plan& plan) {
  Kernels kernels;
  if (const Means* queries = query_means(plan.program))
    kernels.push_back(means_kernel(plan, Tensor::kQ, queries->tokens));
  if (const Means* keys = key_means(plan.program)) {
    kernels.push_back(means_kernel(plan, Tensor::kK, keys->tokens));
    kernels.push_back(means_kernel(plan, Tensor::kV, keys->tokens));
  }
  return kernels;
}

Kernels lower_merge_branch(const Plan& plan) {
  const auto* merge = find_op<MergeBranch>(plan.program);
  if (merge == nullptr) return {};
  const int width = value_dim(plan.program);
  // By sequences, where attend takes all of these together.
  const std::string heads = has_sequence_tiles(plan) ? "n_h" : all_heads(Tensor::kQ);
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
                .grid = rows_grid(heads, merged_rows(*merge), width, kMergedElements, "tokens"),
                .threads = block_threads(),
                .smem_bytes = no_smem(),
                .operands = {"branch_o"},
                .slots = merge_slots(*merge, width),
                .sizes = {{"rows", "n_q"}, {"rows_of_heads", "n_h * n_q"}},
                .needs_keys = false};
  if (merge->queries > 1)
    kernel.config.push_back(integer("kQueries", merge->queries, "/query_means"));
  if (has_sequence_tiles(plan))
    kernel.config.push_back(boolean("kResultsOfAll", true, kNoField, Origin::kDerived,
                                    "attend leaves those of all sequences in one array"));
  kernel.arguments.assign(std::begin(kBranchO), std::end(kBranchO));
  if (merge->weight.empty()) {
    kernel.operands.push_back("branch_lse");
    kernel.arguments.insert(kernel.arguments.end(), std::begin(kBranchLse), std::end(kBranchLse));
    if (merge->lse_base == LseBase::k2)
      kernel.config.push_back(boolean("kLseIsBase2", true, "/attention/lse_base"));
  }
  if (merge->order >= 0) kernel.operands.push_back("order");
  if (merge->is_last()) {
    kernel.operands.push_back("caller_o");
    if (merge->weight.empty()) kernel.operands.push_back("caller_lse");
  }
  return {kernel};
}

}  // namespace lacuna
