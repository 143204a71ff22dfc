#include "tests/device/single/prepare/statistics.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "prepare/statistics.cuh"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

template <int kTensor_, int kHeadDim_, class Element_, int kRange_>
struct Config {
  using Element = Element_;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kThreads = 256;
  static constexpr int kSmemBytes = 8192;
  static constexpr int kTensor = kTensor_;
  static constexpr float kRange = kRange_;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};
struct Hooks {};

template <int kTensor, int kHeadDim, class Element, int kRange>
single::StatisticsVariant variant() {
  using C = Config<kTensor, kHeadDim, Element, kRange>;
  const auto partial = [](const void* args) {
    lacuna::token_statistics<C, Hooks>(*static_cast<const Args*>(args));
  };
  const auto finish = [](const void* args) {
    lacuna::finish_statistics<C, Hooks>(*static_cast<const Args*>(args));
  };
  const bool is_bf16 = std::is_same_v<Element, lacuna::bf16>;
  return {kTensor,
          kHeadDim,
          is_bf16,
          kRange,
          {partial, lacuna::block_smem},
          {finish, lacuna::block_smem}};
}

}  // namespace

const std::vector<single::StatisticsVariant>& single::statistics_variants() {
  using lacuna::bf16, lacuna::f16;
  static const std::vector<StatisticsVariant> variants = {
      variant<0, 64, bf16, 448>(),  variant<0, 256, f16, 448>(), variant<1, 128, bf16, 448>(),
      variant<1, 96, f16, 448>(),   variant<2, 128, f16, 448>(), variant<2, 64, bf16, 2>(),
      variant<2, 256, bf16, 448>(), variant<2, 96, bf16, 448>()};
  return variants;
}
