// select_rows, after the estimate from the last rows, in the configurations of kSelectCases.
#include "tests/device/single/predict/select.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/keep/select.cuh"
#include "select/tokens/last_rows.cuh"
#include "select/tokens/order_last_rows.cuh"
#include "tests/device/single/predict/predict_hooks.hpp"

namespace lacuna {

unsigned char block_smem[227 * 1024];

template <int kNumber>
constexpr bool kIsLast = kSelectCases[kNumber].rows == RowKind::kLast;

template <int kNumber>
struct LastConfig : PredictConfig<kSelectCases[kNumber]> {
  static constexpr int kSmemBytes = token_smem_bytes(kSelectCases[kNumber]);
  static constexpr int kRows = token_rows(kSelectCases[kNumber]);
};

/// Room for some of the tests' shares and heads, so that others lie in the workspace.
template <int kNumber>
struct SharesConfig : LastConfig<kNumber> {
  static constexpr int kSmemBytes = sizeof(OrderScratch<LastConfig<kNumber>::kThreads / 32>) + 768;
};
template <int kNumber>
struct OrderConfig : LastConfig<kNumber> {
  static constexpr int kSmemBytes = 2048;
};

template <int kNumber>
struct SelectConfig : PredictConfig<kSelectCases[kNumber]> {
  static constexpr int kSmemBytes = kSelectSmemBytes;
  static constexpr bool kKeepsFirstInOrder = kSelectCases[kNumber].first;
  static constexpr bool kHasEstimate = kIsLast<kNumber>;
};

template <int kNumber>
void run_select(const void* args) {
  select_rows<SelectConfig<kNumber>, PredictHooks<kSelectCases[kNumber]>>(
      *static_cast<const PredictKernelArgs*>(args));
}

template <int kNumber>
SelectKernels kernels_of() {
  SelectKernels kernels = {{nullptr, block_smem},
                           {nullptr, block_smem},
                           {nullptr, block_smem},
                           {nullptr, block_smem},
                           {run_select<kNumber>, block_smem}};
  if constexpr (kIsLast<kNumber>) {
    using Config = LastConfig<kNumber>;
    using Hooks = PredictHooks<kSelectCases[kNumber]>;
    kernels.sums.run_thread = [](const void* args) {
      predict_last_sums<Config, Hooks>(*static_cast<const PredictKernelArgs*>(args));
    };
    kernels.estimate.run_thread = [](const void* args) {
      predict_last_rows<Config, Hooks>(*static_cast<const PredictKernelArgs*>(args));
    };
    if constexpr (Config::kOrdersTiles) {
      kernels.order_shares.run_thread = [](const void* args) {
        order_shares<SharesConfig<kNumber>, Hooks>(*static_cast<const PredictKernelArgs*>(args));
      };
      kernels.order.run_thread = [](const void* args) {
        order_last_rows<OrderConfig<kNumber>, Hooks>(*static_cast<const PredictKernelArgs*>(args));
      };
    }
  }
  return kernels;
}

template <std::size_t... kNumbers>
std::vector<SelectKernels> all_select(std::index_sequence<kNumbers...>) {
  return {kernels_of<kNumbers>()...};
}

}  // namespace lacuna
}  // namespace

const std::vector<SelectKernels>& select_kernels() {
  static const std::vector<SelectKernels> kernels =
      lacuna::all_select(std::make_index_sequence<std::size(lacuna::kSelectCases)>());
  return kernels;
}
