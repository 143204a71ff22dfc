#include "tests/device/single/prepare/permute.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "prepare/permute.cuh"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

template <int kHeadDim_, int kTensor_, bool kWritesLse_>
struct Config {
  using Element = lacuna::bf16;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kThreads = 256;
  static constexpr int kTensor = kTensor_;
  static constexpr bool kWritesLse = kWritesLse_;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};
struct Hooks {};

template <int kHeadDim, int kTensor>
emulation::Kernel permute() {
  const auto run_thread = [](const void* args) {
    using C = Config<kHeadDim, kTensor, false>;
    lacuna::permute_tokens<C, Hooks>(*static_cast<const Args*>(args));
  };
  return {run_thread, lacuna::block_smem};
}

template <int kHeadDim, bool kWritesLse>
emulation::Kernel unpermute() {
  const auto run_thread = [](const void* args) {
    using C = Config<kHeadDim, 0, kWritesLse>;
    lacuna::unpermute_results<C, Hooks>(*static_cast<const Args*>(args));
  };
  return {run_thread, lacuna::block_smem};
}

template <int kHeadDim>
single::PermuteVariant variant() {
  return {kHeadDim,
          permute<kHeadDim, 0>(),
          permute<kHeadDim, 1>(),
          permute<kHeadDim, 2>(),
          unpermute<kHeadDim, true>(),
          unpermute<kHeadDim, false>()};
}

}  // namespace

const std::vector<single::PermuteVariant>& single::permute_variants() {
  static const std::vector<PermuteVariant> variants = {variant<64>(), variant<96>(), variant<128>(),
                                                       variant<256>()};
  return variants;
}
