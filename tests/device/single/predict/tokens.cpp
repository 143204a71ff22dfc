// predict_tokens and predict_cells in the configurations of kTokenCases.
#include "tests/device/single/predict/tokens.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/cells/cells.cuh"
#include "select/tokens/tokens.cuh"
#include "tests/device/single/predict/predict_hooks.hpp"
#include "tests/device/single/predict/token_cases.hpp"

namespace lacuna {

unsigned char block_smem[227 * 1024];

template <int kNumber>
struct TokenConfig : PredictConfig<kTokenCases[kNumber]> {
  static constexpr int kSmemBytes = token_smem_bytes(kTokenCases[kNumber]);
  static constexpr int kRows = token_rows(kTokenCases[kNumber]);
  using Product = CellsByMma;
};

template <int kNumber>
void run_tokens(const void* args) {
  using Config = TokenConfig<kNumber>;
  using Hooks = PredictHooks<kTokenCases[kNumber]>;
  if constexpr (Config::kCell > 1) {
    predict_cells<Config, Hooks>(*static_cast<const PredictKernelArgs*>(args));
  } else {
    predict_tokens<Config, Hooks>(*static_cast<const PredictKernelArgs*>(args));
  }
}

template <std::size_t... kNumbers>
std::vector<emulation::Kernel> all_tokens(std::index_sequence<kNumbers...>) {
  return {{run_tokens<kNumbers>, block_smem}...};
}

}  // namespace lacuna
}  // namespace

const std::vector<emulation::Kernel>& token_kernels() {
  static const std::vector<emulation::Kernel> kernels =
      lacuna::all_tokens(std::make_index_sequence<std::size(lacuna::kTokenCases)>());
  return kernels;
}
