// What follows from a Config for the mma family of `attend`: block shape, shared-memory layout and
// the depth of the load pipeline. The host's formula (compiler/target) is the same.
#pragma once

#include "gate/gate.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

template <class Config>
struct AttendShape {
  static constexpr int kThreads = 32 * Config::kWarps;
  static constexpr int kKeyBlocks = Config::kTileK / 8;  ///< score accumulators, 8 keys each
  static constexpr int kColumnBlocks =
      Config::kHeadDim / 8;  ///< output accumulators, 8 columns each
  static constexpr int kKeySteps = Config::kTileK / 16;
  static constexpr bool kHasGate = Config::kGateScope != GateScope::kNone;
  static constexpr bool kVotesByTile = Config::kGateScope == GateScope::kTile;

  /// Weigh a tile before the product of the one before it, or after? Before: scores shrink to
  /// packed weights while no fragments of V are live, which above head dim 128 decides about
  /// spilling.
  static constexpr bool kWeighsFirst = Config::kHeadDim > 128;

  using QueryTile = SmemTile<Config::kTileQ, Config::kHeadDim>;
  using KeyTile = SmemTile<Config::kTileK, Config::kHeadDim>;

  /// Keys run kStages tiles ahead; values trail them by two, or wait for the gate's decision.
  static constexpr int kValueAhead = Config::kSkipsVLoad ? 0 : Config::kStages - 2;
  static constexpr int kValueSlots = kValueAhead + 2;
  /// Copy groups that may still be under way when a tile's barrier is reached.
  static constexpr int kPendingGroups =
      Config::kSkipsVLoad ? smaller(Config::kStages - 2, 1) : Config::kStages - 2;

  static constexpr int kKeysOffset = QueryTile::kBytes;
  static constexpr int kValuesOffset = kKeysOffset + Config::kStages * KeyTile::kBytes;
  static constexpr int kVoteOffset = kValuesOffset + kValueSlots * KeyTile::kBytes;
  static constexpr int kSmemBytes =
      kVoteOffset + (kVotesByTile ? GateVote<Config::kWarps>::kBytes : 0);

  static_assert(Config::kTileQ == kWarpRows * Config::kWarps, "a warp owns 16 query rows");
  static_assert(Config::kTileK % 16 == 0, "the product with V takes 16 keys a step");
  static_assert(Config::kHeadDim % 32 == 0, "rows are whole swizzle groups of 64 bytes");
  static_assert(Config::kStages >= 2, "a tile is loaded while another is in use");
  static_assert(!Config::kSkipsVLoad || (kVotesByTile && Config::kSkipsPv),
                "loads belong to the whole block, and PV needs them");
  static_assert(!Config::kSkipsExp || Config::kSkipsPv, "without weights there is no product");
};

/// Dynamic shared memory of one block:
///   2 * head_dim * (tile_q + tile_k * (stages + (skips_v_load ? 2 : stages)))
///   + (gate scope tile ? 16 * warps : 0)
template <class Config>
__host__ __device__ constexpr int attend_mma_smem_bytes() {
  return AttendShape<Config>::kSmemBytes;
}

}  // namespace lacuna
