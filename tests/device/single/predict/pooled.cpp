// predict_pooled in the configurations of kPooledCases.
#include "tests/device/single/predict/pooled.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/pooled/pooled.cuh"
#include "tests/device/single/predict/predict_hooks.hpp"

namespace lacuna {

unsigned char block_smem[227 * 1024];

template <int kNumber>
struct PooledConfig : PredictConfig<kPooledCases[kNumber]> {
  static constexpr int kSmemBytes = kPooledSmemBytes;
  static constexpr bool kColumnsAreTokens = kPooledCases[kNumber].columns_are_tokens;
  static constexpr bool kDecidesKeys = decides_keys(kPooledCases[kNumber]);
  static constexpr int kRows = pooled_rows(kPooledCases[kNumber]);
};

template <int kNumber>
void run_pooled(const void* args) {
  predict_pooled<PooledConfig<kNumber>, PredictHooks<kPooledCases[kNumber]>>(
      *static_cast<const PredictKernelArgs*>(args));
}

template <std::size_t... kNumbers>
std::vector<emulation::Kernel> all_pooled(std::index_sequence<kNumbers...>) {
  return {{run_pooled<kNumbers>, block_smem}...};
}

}  // namespace lacuna
}  // namespace

const std::vector<emulation::Kernel>& pooled_kernels() {
  static const std::vector<emulation::Kernel> kernels =
      lacuna::all_pooled(std::make_index_sequence<std::size(lacuna::kPooledCases)>());
  return kernels;
}
