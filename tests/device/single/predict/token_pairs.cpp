// predict_token_pairs, the kernel before it, and predict_tokens in the configurations of
// kPairCases.
#include "tests/device/single/predict/token_pairs.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/token_pairs/tokens_wgmma.cuh"
#include "select/tokens/reference.cuh"
#include "tests/device/single/predict/predict_hooks.hpp"

namespace lacuna {

alignas(1024) unsigned char block_smem[227 * 1024];
alignas(1024) unsigned char token_pair_smem[227 * 1024];

template <int kNumber, bool kIsPairs>
struct TokenPairConfig : PredictConfig<kPairCases[kNumber]> {
  static constexpr int kSmemBytes =
      kIsPairs ? token_pair_smem_bytes(kPairCases[kNumber]) : token_smem_bytes(kPairCases[kNumber]);
  static constexpr int kRows = token_rows(kPairCases[kNumber]);
};

template <int kNumber>
TokenPairKernels kernels_of() {
  using Hooks = PredictHooks<kPairCases[kNumber]>;
  const auto args_of = [](const void* args) -> const PredictKernelArgs& {
    return *static_cast<const PredictKernelArgs*>(args);
  };
  static constexpr auto args_in = args_of;
  return {{[](const void* args) {
             predict_reference<TokenPairConfig<kNumber, false>, Hooks>(args_in(args));
           },
           block_smem},
          {[](const void* args) {
             predict_token_pairs<TokenPairConfig<kNumber, true>, Hooks>(args_in(args));
           },
           token_pair_smem},
          {[](const void* args) {
             predict_tokens<TokenPairConfig<kNumber, false>, Hooks>(args_in(args));
           },
           block_smem}};
}

template <std::size_t... kNumbers>
std::vector<TokenPairKernels> all_pairs(std::index_sequence<kNumbers...>) {
  return {kernels_of<kNumbers>()...};
}

}  // namespace lacuna
}  // namespace

const std::vector<TokenPairKernels>& token_pair_kernels() {
  static const std::vector<TokenPairKernels> kernels =
      lacuna::all_pairs(std::make_index_sequence<std::size(lacuna::kPairCases)>());
  return kernels;
}
