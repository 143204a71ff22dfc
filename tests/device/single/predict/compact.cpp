#include "tests/device/single/predict/compact.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/compact.cuh"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

using single::CompactShape;

template <CompactShape kShape>
struct Config {
  static constexpr int kThreads = 256;
  static constexpr int kKeepQ = kShape.keep_q;
  static constexpr int kKeepK = kShape.keep_k;
  static constexpr int kTileQ = kShape.tile_q;
  static constexpr int kTileK = kShape.tile_k;
  static constexpr bool kHasMask = kShape.has_mask;
  static constexpr bool kSharedHeads = kShape.shared_heads;
};

template <int kRows>
struct OrderConfig {
  static constexpr int kWorkTiles = kRows;
  static constexpr int kThreads = 256;
  static constexpr int kSmemBytes = 33856;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};

struct Hooks {
  static bool tile_full(const Args& args, int q0, int, int, int k1, int, int) {
    return k1 <= q0 + args.attend.n_k - args.attend.n_q;
  }
  static bool tile_visible(const Args& args, int, int q1, int k0, int, int, int) {
    return k0 <= q1 + args.attend.n_k - args.attend.n_q;
  }
};

template <CompactShape kShape>
single::CompactVariant variant() {
  const auto run_thread = [](const void* args) {
    lacuna::compact_lists<Config<kShape>, Hooks>(*static_cast<const Args*>(args));
  };
  return {kShape, {run_thread, lacuna::block_smem}};
}

}  // namespace

const std::vector<single::CompactVariant>& single::compact_variants() {
  static const std::vector<CompactVariant> variants = {
      variant<{128, 64, 128, 64, true, false}>(), variant<{128, 64, 64, 32, true, true}>(),
      variant<{64, 16, 64, 16, false, true}>(), variant<{128, 128, 128, 16, false, false}>()};
  return variants;
}

emulation::Kernel single::order_rows_kernel(int work_tiles) {
  const auto single = [](const void* args) {
    lacuna::order_rows<OrderConfig<1>, Hooks>(*static_cast<const Args*>(args));
  };
  const auto pairs = [](const void* args) {
    lacuna::order_rows<OrderConfig<2>, Hooks>(*static_cast<const Args*>(args));
  };
  return {work_tiles == 1 ? +single : +pairs, lacuna::block_smem};
}
