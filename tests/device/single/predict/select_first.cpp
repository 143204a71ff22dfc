#include "tests/device/single/predict/select_first.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "select/keep/held_row.cuh"
#include "select/keep/row_shares.cuh"
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
  static constexpr lacuna::Normalise kNormalise = lacuna::Normalise::kNone;
  static constexpr bool kKeepsFirst = true, kHasExclude = false;
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

template <bool kByPlace>
using Held = lacuna::HeldRow<Config<kByPlace>, Hooks, Args>;
template <bool kByPlace>
using Share = lacuna::RowShare<Config<kByPlace>, Hooks, Args, false>;
alignas(16) unsigned char held_smem[sizeof(Held<true>::Smem)];
alignas(16) unsigned char share_smem[sizeof(Share<true>::Smem)];

template <bool kByPlace>
void select_held(const void* args_of_launch) {
  const Args& args = *static_cast<const Args*>(args_of_launch);
  const lacuna::KeepRow row = {};
  Held<kByPlace>(args, row, *reinterpret_cast<typename Held<kByPlace>::Smem*>(held_smem))
      .decide(args.row.p);
}

template <bool kByPlace, bool kDecides>
void select_share(const void* args_of_launch) {
  const Args& args = *static_cast<const Args*>(args_of_launch);
  const lacuna::KeepRow row = {};
  Share<kByPlace> share(
      args, row, args.row.p, *reinterpret_cast<lacuna::RowBins*>(args.predict.row_bins), 1,
      lacuna::block_index(), *reinterpret_cast<typename Share<kByPlace>::Smem*>(share_smem));
  if (kDecides) {
    share.decide(lacuna::ceil_div(args.predict.keep_k_tiles, lacuna::kShareTiles));
  } else {
    share.count();
  }
}

}  // namespace

single::FirstKernel single::first_held_kernel(bool by_place) {
  return {{by_place ? select_held<true> : select_held<false>, held_smem}, sizeof(held_smem)};
}
single::FirstKernel single::count_share_kernel() {
  return {{select_share<false, false>, share_smem}, sizeof(share_smem)};
}
single::FirstKernel single::decide_share_kernel(bool by_place) {
  return {{by_place ? select_share<true, true> : select_share<false, true>, share_smem},
          sizeof(share_smem)};
}
emulation::Kernel single::first_by_warp_kernel(bool by_place) {
  return {by_place ? select_by_warp<true> : select_by_warp<false>, lacuna::block_smem};
}
emulation::Kernel single::first_by_block_kernel(bool by_place) {
  return {by_place ? select_by_block<true> : select_by_block<false>, lacuna::block_smem};
}
