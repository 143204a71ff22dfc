// How a block of predict_token_pairs (predict/tokens_wgmma.cuh) shares out its work, and what lies
// in its shared memory: read this first.
//
//   warps 0-15   four warpgroups of 64 queries each, in registers: products by wgmma, bounds of
//                each tile's largest weight, decisions
//   warps 16-19  the producers (which give their registers up): keys of each step, with their
//                scales and biases, into a ring of slots; each warp a quarter of the keys
//
//   slot n       256 keys | what belongs to them: steps, numbers, unit_scale, largest_bias
//     full[n]      132 arrivals: each warp of the producers, for what it wrote; and each of their
//                  lanes, when its copies have landed
//     empty[n]     16 arrivals: each warp that computes, after its last read
//
// Which steps come, each producer finds on its own, and all find the same: those of which one of
// the block's queries sees anything, in ascending order. They meet nowhere but at the slots'
// barriers, and run ahead by as many steps as there are slots. A warpgroup that sees nothing of a
// step passes it on.
//
// Bounds of 32 tiles, a word of the kept bits, are collected by all warps of a query tile
// (`largest` and `largest_scale`, two buffers in turn). Then they meet at their named barrier, and
// one warp decides while the others go on. Who writes into a buffer again has met its reader at the
// barrier between.
#pragma once

#include "arch/mbarrier.cuh"
#include "arch/warpgroup.cuh"
#include "base/kinds.cuh"
#include "kernel/ring_position.cuh"
#include "predict/keep_row.cuh"
#include "tile/byte_panel.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Config>
struct PairShape {
  static constexpr int kWarpgroups = 4;
  static constexpr int kWarps = 4 * kWarpgroups;  ///< that compute
  static constexpr int kProducerWarps = 4;
  static constexpr int kThreads = 32 * (kWarps + kProducerWarps);
  static constexpr int kFullArrivals = 33 * kProducerWarps, kEmptyArrivals = kWarps;
  /// Of 96 at the start, the most of five warpgroups: no more can be dealt out than there were.
  static constexpr int kConsumerRegisters = 112, kProducerRegisters = 32;
  static_assert(kWarpgroups * kConsumerRegisters + kProducerRegisters <= 96 * (kWarpgroups + 1));
  static constexpr int kRows = kWarpgroups * kWarpgroupRows;
  static constexpr int kStages = 4;
  /// What is done once a step is done half as often as products fill the registers.
  static constexpr int kStepKeys = 256, kHalfKeys = 128;
  static constexpr int kBlocks = kHalfKeys / 8;  ///< accumulators of 8 keys

  /// Keys of which a lane holds those of one scale.
  static constexpr int kUnitKeys = 32;
  static constexpr int kUnits = kStepKeys / kUnitKeys, kHalfUnits = kUnits / 2;
  static constexpr int kLaneKeys = kUnitKeys / 4;  ///< of a unit, that a lane of a quad has
  static_assert(kHalfUnits == 4 && kLaneKeys == kUnits);
  static constexpr int kTiles = kStepKeys / Config::kTileK, kHalfTiles = kTiles / 2;
  static constexpr int kUnitsOfTile = Config::kTileK / kUnitKeys;
  static constexpr int kStepsOfWord = 32 / kTiles;
  static constexpr int kTileWarpgroups = Config::kTileQ / kWarpgroupRows;

  /// A column's bias is added to integer products, in this fraction of their unit. Products of 4
  /// bits leave room for 16ths: the queries are multiplied by 16.
  static constexpr int kParts = Config::kBits == 4 && Config::kHasColumnBias ? 16 : 1;
  /// Biases up to so many of these steps are exact to half of one; with the products they stay
  /// below 2^22.
  static constexpr float kMostSteps = Config::kBits == 4 ? 262144.0f : 1048576.0f;
  /// How far a sum of both may be from the logit, in steps, with all rounding of either.
  static constexpr float kMarginSteps =
      (Config::kBits == 8 ? 2.0f : 1.0f) * (Config::kHasColumnBias ? 1.0f
                                            : Config::kBits == 8   ? 0.5f
                                                                   : 0.0625f);

  using KeyPanel = BytePanel<kStepKeys, Config::kHeadDim>;
  using KeyTile = ByteTile<kStepKeys, Config::kHeadDim>;

  /// Behind the slots of keys.
  struct alignas(16) Control {
    unsigned long long full[kStages], empty[kStages];
    /// By unit, lane of a quad, and then as the lane has them: biases, in units of the key's scale;
    /// behind those, as of one unit more, the scales of all units.
    alignas(16) float numbers[kStages][kStepKeys + kUnitKeys];
    alignas(16) float unit_scale[kStages][kUnits];            ///< the largest of each unit
    alignas(16) float largest_bias[kStages][kProducerWarps];  ///< magnitude, in units
    alignas(16) int largest[2][kWarps][32];
    alignas(16) float largest_scale[2][kWarpgroups][32];
    float offset[kRows];  ///< of each row, see TokenBlock
    int steps[kStages];   ///< less than 0: there are no more
    // of each warpgroup's tile:
    int visible[kWarpgroups];    ///< tiles of the row
    int row_scale[kWarpgroups];  ///< the largest unit of its rows (a float's bits), in log2
    int slack[kWarpgroups];      ///< ... and of what rounding does to its rows
  };

  static constexpr int kControlOffset = kStages * KeyPanel::kBytes;
  static_assert(kControlOffset + static_cast<int>(sizeof(Control)) <= Config::kSmemBytes);
  static_assert(Config::kTileQ % kWarpgroupRows == 0 && kWarpgroups % kTileWarpgroups == 0);
  static_assert(Config::kTileK % kUnitKeys == 0 && kHalfKeys % Config::kTileK == 0);
  static_assert((Config::kBits == 8 || Config::kBits == 4) && Config::kCell == 1 &&
                Config::kLastRows == 0);
  static_assert((Config::kNormalise == Normalise::kLse ||
                 Config::kNormalise == Normalise::kPreviousLse) &&
                !Config::kSums && !Config::kUsesScore && !Config::kUsesRank && !Config::kUsesMass &&
                !Config::kHasExclude);
};

/// Addresses of one block's shared memory.
template <class Config>
struct PairSmem {
  using Shape = PairShape<Config>;
  unsigned char* dynamic;  ///< all of it; at a multiple of 1024, as the permutation of keys wants

  __device__ __forceinline__ typename Shape::Control& control() const {
    return *reinterpret_cast<typename Shape::Control*>(dynamic + Shape::kControlOffset);
  }
  __device__ __forceinline__ u32 keys(u32 slot) const {
    return shared_address(dynamic) + slot * static_cast<u32>(Shape::KeyPanel::kBytes);
  }
  __device__ __forceinline__ static Mbarrier barrier(const unsigned long long& place) {
    return {shared_address(&place)};
  }
};

/// The queries of a block: from the last on, since under a causal mask those see the most.
template <class Config, class Args>
__device__ __forceinline__ KeepRow rows_of_block(const Args& args) {
  constexpr int kRows = PairShape<Config>::kRows;
  const int blocks = ceil_div(args.attend.n_q, kRows);
  const int head = block_index() / blocks, b = head / args.attend.n_h;
  const int q0 = (blocks - 1 - (block_index() - head * blocks)) * kRows;
  return {q0 / Config::kTileQ, head - b * args.attend.n_h, b, q0,
          smaller(q0 + kRows, args.attend.n_q) - 1};
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool sees_step(const Args& args, const KeepRow& row, int step) {
  constexpr int kStepKeys = PairShape<Config>::kStepKeys;
  return sees_keys<Config, Hooks>(args, row, step * kStepKeys,
                                  smaller((step + 1) * kStepKeys, args.attend.n_k) - 1);
}

}  // namespace lacuna
