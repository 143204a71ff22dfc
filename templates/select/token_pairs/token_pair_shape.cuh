// How a block of predict_token_pairs (select/token_pairs/tokens_wgmma.cuh) shares out its work, and
// what lies in its shared memory: read this first.
//
//   warps 0-15   four warpgroups of 64 queries each: products by wgmma, bounds of each tile's
//                largest weight, decisions
//   warps 16-19  the producers (which give their registers up): keys of each step, with their
//                scales and biases, into a ring of slots; each warp a quarter of the keys
//
//   queries      each warp's own 16, written before its warpgroup begins
//   slot n       256 keys | what belongs to them: messages, numbers, largest_bias
//     full[n]      4 arrivals: each warp of the producers, when what it wrote and copied is there
//     empty[n]     16 arrivals: each warp that computes, after its last read
//
// A warpgroup bounds a product before it issues the next. Until then the tensor cores compute those
// of the other three. (Two warpgroups, each with a product ahead, leave the tensor cores idle more
// often. Queries in registers are as fast, but registers limit a block.)
//
// A product is bounded at most twice. First coarsely, by the largest bias of a lane's keys of one
// scale: enough if the tile is far from the threshold of `keep`, on either side. Then closely, by
// the bias of each key: more than twice the instructions, and eight times the reads of shared
// memory, where a register of each lane is a whole line.
//
// Each producer finds by itself which steps come, and all find the same: those of which one of the
// block's queries sees anything, in ascending order. They synchronise only at the slots' barriers,
// and run ahead by one step less than there are slots. A team that sees nothing of a step passes it
// on.
//
// A team is the warpgroups that share a query tile. All its warps write their bounds of 32 tiles, a
// word of the kept bits, into one of two buffers (`bounds`). After their named barrier one warp
// decides while the others go on. The barrier in between orders reuse of a buffer after its read.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/warpgroup.cuh"
#include "base/kinds.cuh"
#include "pipeline/ring_position.cuh"
#include "select/four_consumers.cuh"
#include "select/keep/keep_row.cuh"
#include "shared/estimate_block.cuh"
#include "tile/byte_panel.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Config>
struct TokenPairShape : FourConsumers {
  static constexpr int kRows = kWarpgroups * kWarpgroupRows;
  static constexpr int kStages = kTokenPairStages;
  /// A product is of half a step.
  static constexpr int kStepKeys = kTokenPairStepKeys, kHalves = 2, kHalfKeys = kStepKeys / kHalves;
  static constexpr int kBlocks = kHalfKeys / 8;  ///< accumulators of 8 keys

  /// Keys of which a lane holds those of one scale.
  static constexpr int kUnitKeys = 32;
  static constexpr int kUnits = kStepKeys / kUnitKeys, kHalfUnits = kUnits / kHalves;
  static constexpr int kLaneKeys = kUnitKeys / 4;  ///< of a unit, that a lane of a quad has
  static_assert(kHalfUnits == 4 && kLaneKeys == kUnits);
  static constexpr int kTiles = kStepKeys / Config::kTileK, kHalfTiles = kTiles / kHalves;
  static constexpr int kUnitsOfTile = Config::kTileK / kUnitKeys;
  static constexpr int kStepsOfWord = 32 / kTiles;
  static constexpr int kTileSets = Config::kTileQ / kWarpgroupRows;
  static constexpr int kTeams = kWarpgroups / kTileSets, kTeamWarps = 4 * kTileSets;

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
  /// Is a first look worth while?
  static constexpr bool kHasCoarseBound = Config::kHasThreshold && Config::kHasColumnBias;

  using KeyPanel = BytePanel<kStepKeys, Config::kHeadDim>;
  using KeyTile = ByteTile<kStepKeys, Config::kHeadDim>;
  static constexpr int kKeyBytes = KeyPanel::kBytes;  ///< of a slot

  /// Of a unit: the scale of its keys and what that divides by; the largest of their biases; and
  /// how far below that they are, with what else a first look does not know.
  enum Number { kScale, kInverse, kMostBias, kSpread, kNumbers };
  /// The largest of no biases: less than any of which products could make something, but finite.
  static constexpr float kNoBias = -1e20f;
  /// Of a tile's largest weight.
  enum Bound { kAbove, kBelow, kBounds };

  /// What comes in a slot.
  struct alignas(8) Message {
    int step;   ///< less than 0: there are no more
    u32 teams;  ///< a bit for each: does it see anything of the step?
  };

  /// Behind the slots of keys and the queries.
  struct alignas(16) Control {
    unsigned long long full[kStages], empty[kStages];
    /// By unit, lane of a quad, and then as the lane has them: biases, in units of the key's scale.
    alignas(16) float bias[kStages][kUnits][4][kLaneKeys];
    /// What one lane of a quad has of all units.
    alignas(16) float numbers[kStages][kNumbers][4][kUnits];
    alignas(16) float largest_bias[kStages][kProducerWarps];  ///< magnitude, in units
    alignas(16) int bounds[2][kBounds][4 * kWarpgroups][32];  ///< of each 16 rows
    float offset[kRows];                                      ///< of each row, see TokenBlock
    Message messages[kStages];
    int visible[kTeams];  ///< tiles of the row of each query tile
  };

  using QueryPanel = BytePanel<kRows, Config::kHeadDim>;
  using QueryTile = ByteTile<kRows, Config::kHeadDim>;
  static constexpr int kQueryOffset = kStages * kKeyBytes;
  static constexpr int kControlOffset = kQueryOffset + QueryPanel::kBytes;
  static_assert(kRows == kTokenPairRows &&
                kControlOffset == token_pair_tile_bytes(Config::kHeadDim));
  static_assert(kControlOffset + static_cast<int>(sizeof(Control)) <= Config::kSmemBytes);
  static_assert(Config::kTileQ % kWarpgroupRows == 0 && kWarpgroups % kTileSets == 0);
  static_assert(Config::kTileK % kUnitKeys == 0 && kHalfKeys % Config::kTileK == 0);
  static_assert((Config::kBits == 8 || Config::kBits == 4) && Config::kCell == 1 &&
                Config::kLastRows == 0);
  static_assert((Config::kNormalise == Normalise::kLse ||
                 Config::kNormalise == Normalise::kPreviousLse) &&
                !Config::kSums && !Config::kUsesScore && !Config::kOrdersTiles &&
                !Config::kKeepsFirst && !Config::kHasExclude);
};

template <class Config>
using TokenPairSmem = FourConsumersSmem<TokenPairShape<Config>>;

/// Those of them that a team has; q1 < q0 if there are none.
template <class Config, class Args>
__device__ __forceinline__ KeepRow rows_of_team(const Args& args, const KeepRow& block, int team) {
  return keep_row_of<Config>(args, block.b, block.h, block.i + team);
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool sees_step(const Args& args, const KeepRow& row, int step) {
  constexpr int kStepKeys = TokenPairShape<Config>::kStepKeys;
  return sees_keys<Config, Hooks>(args, row, step * kStepKeys,
                                  smaller((step + 1) * kStepKeys, args.attend.n_k) - 1);
}

}  // namespace lacuna
