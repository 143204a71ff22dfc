// How a block of predict_token_softmax (select/token_softmax/token_softmax.cuh) shares out its
// work, and what lies in its shared memory: read this first.
//
//   warpgroup w  queries 64 w .. 64 w + 63 of a query tile, against all keys of each step
//
//   queries      of the query tile, written before its first step
//   slot n % 3   64 keys of step n, and what is added to their products (`bias`)
//
// The steps of a row are 64 keys each, of the tiles that the row sees, in ascending order. All
// threads of the block take part in each step n:
//
//   own copies of step n have landed, barrier: all have
//   the product of step n is issued, then copies of step n + 2
//   the product has ended, its sums are reduced
//
// The barrier also orders reuse: slot (n + 2) % 3 was last read in step n - 1, which every warp has
// ended then. What a warpgroup waits for is hidden by other warpgroups, and by other blocks
// of the multiprocessor.
#pragma once

#include "arch/warpgroup.cuh"
#include "base/kinds.cuh"
#include "quantise/groups.cuh"
#include "select/keep/block_reduce.cuh"
#include "select/keep/keep_row.cuh"
#include "shared/estimate_block.cuh"
#include "tile/byte_panel.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Config>
struct TokenSoftmaxShape {
  static constexpr int kWarpgroups = Config::kTileQ / kWarpgroupRows;
  static constexpr int kThreads = Config::kThreads, kWarps = 4 * kWarpgroups;
  static constexpr int kStages = kSoftmaxStages, kStepKeys = kSoftmaxStepKeys;
  static constexpr int kBlocks = kStepKeys / 8;  ///< accumulators of 8 keys
  static constexpr int kStepsOfTile = Config::kTileK / kStepKeys;
  /// Keys of which a lane holds those of one scale.
  static constexpr int kUnitKeys = 32, kUnits = kStepKeys / kUnitKeys;

  using KeyPanel = BytePanel<kStepKeys, Config::kHeadDim>;
  using KeyTile = ByteTile<kStepKeys, Config::kHeadDim>;
  using QueryPanel = BytePanel<Config::kTileQ, Config::kHeadDim>;
  using QueryTile = ByteTile<Config::kTileQ, Config::kHeadDim>;
  using KeyGroups = QuantGroups<Config::kGroup, false, Config::kTileK>;
  using QueryGroups = QuantGroups<Config::kGroup, true, Config::kTileQ>;

  /// Behind the queries and the slots of keys.
  struct alignas(16) Control {
    alignas(16) float bias[kStages][kStepKeys];
    /// log2 of each row's sum of exp(logit); inf for a row that takes no part.
    alignas(16) float log2_sum[Config::kTileQ];
    ReduceScratch reduce;
  };
  static constexpr int kKeyOffset = QueryPanel::kBytes;
  static constexpr int kControlOffset = kKeyOffset + kStages * KeyPanel::kBytes;

  static_assert(kThreads == 32 * kWarps);
  static_assert(kControlOffset == token_softmax_tile_bytes(Config::kTileQ, Config::kHeadDim));
  static_assert(kControlOffset + static_cast<int>(sizeof(Control)) <= Config::kSmemBytes);
  static_assert(Config::kTileQ % kWarpgroupRows == 0 && Config::kTileK % kStepKeys == 0);
  static_assert((Config::kBits == 8 || Config::kBits == 4) && Config::kCell == 1 &&
                Config::kLastRows == 0);
  static_assert(Config::kNormalise == Normalise::kSoftmax && !Config::kSums &&
                !Config::kUsesScore && !Config::kOrdersTiles && !Config::kKeepsFirst &&
                !Config::kHasExclude);
};

/// The tiles of a row that take part, by a whole warp: 32 at once, a bit each.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ u32 seen_tiles(const Args& args, const KeepRow& row, int word) {
  const int j = word * 32 + lane_index();
  return __ballot_sync(kAllLanes,
                       j < args.predict.keep_k_tiles && sees_tile<Config, Hooks>(args, row, j));
}

/// The steps of a row, one after the other; the same in all warps.
template <class Config, class Hooks, class Args>
class TokenSoftmaxWalk {
  using Shape = TokenSoftmaxShape<Config>;

 public:
  __device__ __forceinline__ TokenSoftmaxWalk(const Args& args, const KeepRow& row)
      : args_(args), row_(row) {}

  /// The first key of the next step; less than 0 if there is none.
  __device__ __forceinline__ int next() {
    if (Shape::kStepsOfTile > 1 && of_tile_ > 0) {
      if (++of_tile_ == Shape::kStepsOfTile) of_tile_ = 0;
      return last_ += Shape::kStepKeys;
    }
    while (left_ == 0) {
      if (++word_ >= args_.predict.keep_words) return -1;
      left_ = seen_tiles<Config, Hooks>(args_, row_, word_);
    }
    last_ = (word_ * 32 + __ffs(static_cast<int>(left_)) - 1) * Config::kTileK;
    left_ &= left_ - 1;
    if (Shape::kStepsOfTile > 1) of_tile_ = 1;
    return last_;
  }

 private:
  const Args& args_;
  const KeepRow& row_;
  int word_ = -1, last_ = 0, of_tile_ = 0;
  u32 left_ = 0;
};

}  // namespace lacuna
