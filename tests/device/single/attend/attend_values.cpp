// Preparation of e4m3 values.
#include "tests/device/emulation/cuda.hpp"
#include "tests/device/single/attend/attend_variants.hpp"

namespace {
#include "prepare/prepare_values.cuh"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

template <int kHeadDim_, class Element_>
struct Config {
  using Element = Element_;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kThreads = 256;
  static constexpr int kSmemBytes = 36864;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};
struct Hooks {};

template <int kHeadDim, class Element>
single::ValuesVariant variant() {
  const auto body = [](const void* args) {
    lacuna::prepare_values<Config<kHeadDim, Element>, Hooks>(*static_cast<const Args*>(args));
  };
  return {kHeadDim, std::is_same_v<Element, lacuna::bf16>, {body, lacuna::block_smem}};
}

}  // namespace

const std::vector<single::ValuesVariant>& single::values_variants() {
  using lacuna::bf16, lacuna::f16;
  static const std::vector<ValuesVariant> variants = {variant<64, bf16>(), variant<96, f16>(),
                                                      variant<128, bf16>(), variant<256, f16>()};
  return variants;
}
