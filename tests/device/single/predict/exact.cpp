// predict_exact_sums and predict_exact_largest in the configurations of kExactCases.
#include "tests/device/single/predict/exact.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/exact/exact_largest.cuh"
#include "select/exact/exact_sums.cuh"
#include "tests/device/single/predict/predict_hooks.hpp"

namespace lacuna {

alignas(1024) unsigned char exact_smem[227 * 1024];

template <int kNumber>
struct ExactConfig : PredictConfig<kExactCases[kNumber]> {
  static constexpr int kSmemBytes = exact_smem_bytes(kExactCases[kNumber]);
};

template <int kNumber>
ExactKernels kernels_of() {
  using Config = ExactConfig<kNumber>;
  using Hooks = PredictHooks<kExactCases[kNumber]>;
  ExactKernels kernels = {{nullptr, exact_smem}, {nullptr, exact_smem}};
  kernels.largest.run_thread = [](const void* args) {
    predict_exact_largest<Config, Hooks>(*static_cast<const PredictKernelArgs*>(args));
  };
  if constexpr (Config::kNormalise != Normalise::kPreviousLse) {
    kernels.sums.run_thread = [](const void* args) {
      predict_exact_sums<Config, Hooks>(*static_cast<const PredictKernelArgs*>(args));
    };
  }
  return kernels;
}

template <std::size_t... kNumbers>
std::vector<ExactKernels> all_exact(std::index_sequence<kNumbers...>) {
  return {kernels_of<kNumbers>()...};
}

}  // namespace lacuna
}  // namespace

const std::vector<ExactKernels>& exact_kernels() {
  static const std::vector<ExactKernels> kernels =
      lacuna::all_exact(std::make_index_sequence<std::size(lacuna::kExactCases)>());
  return kernels;
}
