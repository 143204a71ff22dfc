// quantise_values: v in e4m3, transposed, so that attend multiplies tiles as they are.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {
namespace {

constexpr int kValuesOfThread = 64;

Chosen<int> values_smem(int head_dim) {
  return {prepare_values_smem_bytes(head_dim), Origin::kDerived,
          std::to_string(head_dim) + " channels * (" + std::to_string(kValueTokens) +
              " codes + a scale and its reciprocal)"};
}

Chosen<int> values_blocks(int head_dim) {
  if (kValueTokens * head_dim > kValuesOfThread * kBlockThreads)
    return {1, Origin::kDerived, "threads have more than 64 elements each"};
  return {3, Origin::kDerived, "enough for 64 elements of a thread"};
}

}  // namespace

Kernels lower_prepare_values(const Plan& plan) {
  const auto* values = find_op<QuantiseValues>(plan.program);
  if (values == nullptr) return {};
  constexpr Tensor kTensor = Tensor::kV;
  const int head_dim = plan.program.head_dim;
  return {{.name = "prepare_v",
           .because = "attend multiplies values in e4m3",
           .header = "prepare/prepare_values.cuh",
           .function = "prepare_values",
           .config = {number("kRange", values->range, "/quantise/v/range")},
           .grid = {blocks_over(kTensor, kPreparedTokens) + " * " +
                        std::to_string(kPreparedTokens / kValueTokens),
                    "one for each " + std::to_string(kValueTokens) +
                        " tokens of a head, padded to " + std::to_string(kPreparedTokens)},
           .threads = block_threads(),
           .smem_bytes = values_smem(head_dim),
           .resident_blocks = values_blocks(head_dim),
           .operands = {"v", "v_scale"},
           .slots = {{"v_values", units(all_heads(kTensor), padded_length(kTensor), head_dim)}}}};
}

}  // namespace lacuna
