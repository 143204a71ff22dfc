// permute, unpermute: q, k and v copied in the order of the computation, o and lse copied back.
// Keys and values of a branch over means are not copied: the kernel that makes the means reads the
// tokens in that order (branches.cpp).
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {
namespace {

constexpr const char* kPermuteHeader = "prepare/permute.cuh";

/// Ordered copies, contiguous. Strides are tokens (times the width of a row).
constexpr Argument kOrderedQ[] = {{"q.data", FieldSource::kWorkspace, "ordered_q"},
                                  {"q.stride_b", FieldSource::kScaledValue, "q_tokens_of_heads"},
                                  {"q.stride_h", FieldSource::kScaledValue, "q_tokens"},
                                  {"q.stride_n", FieldSource::kConstant, ""}};
/// Of attend; those of a branch are merge_branch's (branches.cpp).
constexpr Argument kOrderedResults[] = {
    {"o.data", FieldSource::kWorkspace, "ordered_o"},
    {"o.stride_b", FieldSource::kScaledValue, "q_tokens_of_heads"},
    {"o.stride_h", FieldSource::kScaledValue, "q_tokens"},
    {"o.stride_n", FieldSource::kConstant, ""},
    {"lse.data", FieldSource::kWorkspace, "ordered_lse"},
    {"lse.stride_b", FieldSource::kScaledValue, "q_tokens_of_heads"},
    {"lse.stride_h", FieldSource::kScaledValue, "q_tokens"}};
constexpr Argument kOrderedK[] = {{"k.data", FieldSource::kWorkspace, "ordered_k"},
                                  {"k.stride_b", FieldSource::kScaledValue, "k_tokens_of_heads"},
                                  {"k.stride_h", FieldSource::kScaledValue, "k_tokens"},
                                  {"k.stride_n", FieldSource::kConstant, ""}};
constexpr Argument kOrderedV[] = {{"v.data", FieldSource::kWorkspace, "ordered_v"},
                                  {"v.stride_b", FieldSource::kScaledValue, "k_tokens_of_heads"},
                                  {"v.stride_h", FieldSource::kScaledValue, "k_tokens"},
                                  {"v.stride_n", FieldSource::kConstant, ""}};

ShapeExpr permute_grid(Tensor tensor) {
  return {blocks_over(tensor, kPermutedTokens),
          "one for each " + std::to_string(kPermutedTokens) + " tokens of a head"};
}

Kernel copy_kernel(const Plan& plan, Tensor tensor) {
  struct CopyNames {
    const char *kernel, *caller, *slot;
  };
  constexpr CopyNames kNames[] = {{"permute_q", "caller_q", "ordered_q"},
                                  {"permute_k", "caller_k", "ordered_k"},
                                  {"permute_v", "caller_v", "ordered_v"}};
  const CopyNames& names = kNames[static_cast<int>(tensor)];
  const int width = tensor == Tensor::kV ? value_dim(plan.program) : plan.program.head_dim;
  const int row_bytes = width * kElementBytes;
  Kernel kernel{.name = names.kernel,
                .because = std::string(name_of(tensor)) + " is computed with in another order",
                .header = kPermuteHeader,
                .function = "permute_tokens",
                .config = {tensor_field(tensor)},
                .grid = permute_grid(tensor),
                .threads = block_threads(),
                .smem_bytes = no_smem(),
                .operands = {names.caller, "order"},
                .slots = {{names.slot, units(all_heads(tensor), length_of(tensor), row_bytes)}},
                .needs_keys = tensor != Tensor::kQ};
  if (plan.program.kv == KvFormat::kE4M3 && tensor != Tensor::kQ) add_code_field(kernel.config);
  return kernel;
}

}  // namespace

Kernels lower_permute(const Plan& plan) {
  if (find_op<Permute>(plan.program) == nullptr) return {};
  Kernels kernels;
  if (query_means(plan.program) == nullptr) {
    Kernel& q = kernels.emplace_back(copy_kernel(plan, Tensor::kQ));
    q.arguments.assign(std::begin(kOrderedQ), std::end(kOrderedQ));
    q.sizes = {{"q_tokens", "n_q"}, {"q_tokens_of_heads", "n_h * n_q"}};
  }
  if (key_means(plan.program) == nullptr) {
    Kernel& k = kernels.emplace_back(copy_kernel(plan, Tensor::kK));
    k.arguments.assign(std::begin(kOrderedK), std::end(kOrderedK));
    k.sizes = {{"k_tokens", "n_k"}, {"k_tokens_of_heads", "n_h_kv * n_k"}};
    kernels.push_back(copy_kernel(plan, Tensor::kV));
    kernels.back().arguments.assign(std::begin(kOrderedV), std::end(kOrderedV));
  }
  return kernels;
}

Kernels lower_unpermute(const Plan& plan) {
  if (find_op<Unpermute>(plan.program) == nullptr) return {};
  const bool lse = attend_of(plan.program).lse;
  Kernel kernel{.name = "unpermute",
                .because = "the caller wants the results in its own order",
                .header = kPermuteHeader,
                .function = "unpermute_results",
                .config = {boolean("kWritesLse", lse, "/attention/lse")},
                .grid = permute_grid(Tensor::kQ),
                .threads = block_threads(),
                .smem_bytes = no_smem(),
                .operands = {"ordered_o", "order", "caller_o"},
                .needs_keys = false};
  kernel.arguments.assign(std::begin(kOrderedResults), std::end(kOrderedResults));
  if (lse) kernel.operands.insert(kernel.operands.end(), {"ordered_lse", "caller_lse"});
  return {kernel};
}

}  // namespace lacuna
