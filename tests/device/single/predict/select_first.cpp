#include "tests/device/single/predict/select_first.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/keep/select_first.cuh"

namespace lacuna {
struct Scratch {
  OrderScratch<8> order;
  ReduceScratch reduce;
};
unsigned char block_smem[sizeof(Scratch)];
static_assert(sizeof(Scratch) == single::kFirstRowBytes);
}  // namespace lacuna

template <bool kByPlace>
struct Config {
  static constexpr int kThreads = 256;
  static constexpr int kTileQ = 64, kTileK = 1;
  static constexpr bool kHasMask = true;
  static constexpr lacuna::Step kStep = lacuna::Step::kOnly;
  static constexpr bool kKeepsByPlace = kByPlace, kUsesScore = false, kUsesMass = false;
  static constexpr bool kUsesSimilarQ = false, kUsesSimilarK = false;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
  single::FirstRow row;
};

struct Hooks {
  static int count(const Args& args, int k0, int k1) {
    int seen = 0;
    for (int k = k0; k <= k1; ++k) seen += args.row.sees[k];
    return seen;
  }
  static bool tile_visible(const Args& args, int, int, int k0, int k1, int, int) {
    return count(args, k0, k1) > 0;
  }
  static bool tile_full(const Args& args, int, int, int k0, int k1, int, int) {
    return count(args, k0, k1) == k1 - k0 + 1;
  }
  struct KeepParts {};
  static KeepParts keep_parts(const Args&, int, int, int, int, int) { return {}; }
  static bool keep(const Args& args, const KeepParts&, float, float, int rank, float, int, float,
                   float, int, int, int, int, int k0, int, int, int) {
    return rank < args.row.top || (args.row.step > 0 && k0 % args.row.step == 0);
  }
  static bool keep_rank(const Args& args, int rank, int, float, int, int, int, int, int) {
    return rank < args.row.top;
  }
};

template <bool kByPlace>
void select_by_warp(const void* args_of_launch) {
  const Args& args = *static_cast<const Args*>(args_of_launch);
  unsigned seen = 0;
  int visible = 0, end = 0;
  for (int j = 0; j < args.predict.keep_k_tiles; ++j) {
    if (!args.row.sees[j]) continue;
    ++visible;
    end = j + 1;
    if (j % 32 == lacuna::lane_index()) seen |= 1U << j / 32;
  }
  const lacuna::WarpKeys<single::kMostFirstTiles / 32> keys(args.row.p, seen, end);
  lacuna::select_first<Config<kByPlace>, Hooks>(args, {}, keys, visible, lacuna::WarpTeam());
}

template <bool kByPlace>
void select_by_block(const void* args_of_launch) {
  const Args& args = *static_cast<const Args*>(args_of_launch);
  auto& scratch = *reinterpret_cast<lacuna::Scratch*>(lacuna::block_smem);
  lacuna::select_first<Config<kByPlace>, Hooks>(args, {}, args.row.p, scratch.order,
                                                scratch.reduce);
}

}  // namespace

emulation::Kernel single::first_by_warp_kernel(bool by_place) {
  return {by_place ? select_by_warp<true> : select_by_warp<false>, lacuna::block_smem};
}
emulation::Kernel single::first_by_block_kernel(bool by_place) {
  return {by_place ? select_by_block<true> : select_by_block<false>, lacuna::block_smem};
}
