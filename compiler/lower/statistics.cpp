// smooth, quantise_values: what is known of all tokens of a head at once, channel by channel: the
// means of q and k that smoothing subtracts, and the scales of v. A kernel leaves partial results
// of some tokens each, which a second one brings together in order.
#include <utility>

#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/token_ops.hpp"

namespace lacuna {
namespace {

constexpr int kLargestHeadDim = 256;
constexpr const char* kStatisticsHeader = "prepare/statistics.cuh";

/// Each warp leaves one row of channels.
Chosen<int> statistics_smem() {
  return {kBlockWarps * kLargestHeadDim * kWordBytes, Origin::kDerived,
          "8 warps * 256 channels * 4, enough for every head dim"};
}

struct StatisticsNames {
  const char *partial, *finish, *tensor, *result;
};

Kernels statistics_kernels(const Plan& plan, Tensor tensor, const StatisticsNames& names,
                           std::string because) {
  const int head_dim = plan.program.head_dim;
  const bool is_mean = tensor != Tensor::kV;
  const bool decides = is_mean && !quantises_attend(plan.program);
  const std::string tokens = std::to_string(kStatisticsTokens);
  Kernel partial{.name = names.partial,
                 .because = std::move(because),
                 .header = kStatisticsHeader,
                 .function = "token_statistics",
                 .config = {tensor_field(tensor)},
                 .grid = {blocks_over(tensor, kStatisticsTokens),
                          "one for each " + tokens + " tokens of a head"},
                 .threads = block_threads(),
                 .smem_bytes = statistics_smem(),
                 .operands = {names.tensor},
                 .slots = {{"partial", units(all_heads(tensor), tiles_of(tensor, kStatisticsTokens),
                                             head_dim * kWordBytes)}},
                 .decides = decides};
  Kernel finish{
      .name = names.finish,
      .because = "brings together what " + partial.name + " has found",
      .header = kStatisticsHeader,
      .function = "finish_statistics",
      .config = {tensor_field(tensor)},
      .grid = {all_heads(tensor), "one for each head"},
      .threads = block_threads(),
      .smem_bytes = statistics_smem(),
      .operands = {"partial"},
      .slots = {{names.result, units(all_heads(tensor), std::to_string(head_dim), kWordBytes)}},
      .decides = decides};
  return {partial, finish};
}

}  // namespace

Kernels lower_statistics(const Plan& plan) {
  Kernels kernels;
  if (token_ops(plan.program, Tensor::kQ).smooth != nullptr)
    append_kernels(kernels,
                   statistics_kernels(plan, Tensor::kQ, {"mean_q", "finish_mean_q", "q", "q_mean"},
                                      "the mean of the queries is subtracted from them"));
  if (token_ops(plan.program, Tensor::kK).smooth != nullptr)
    append_kernels(kernels,
                   statistics_kernels(plan, Tensor::kK, {"mean_k", "finish_mean_k", "k", "k_mean"},
                                      "the mean of the keys is subtracted from them"));
  const auto* values = find_op<QuantiseValues>(plan.program);
  if (values == nullptr) return kernels;
  append_kernels(kernels, statistics_kernels(plan, Tensor::kV,
                                             {"largest_v", "finish_largest_v", "v", "v_scale"},
                                             "e4m3 values have a scale for each channel"));
  kernels.back().config.push_back(number("kRange", values->range, "/quantise/v/range"));
  return kernels;
}

}  // namespace lacuna
