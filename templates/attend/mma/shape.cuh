// What follows from a Config for the mma family of `attend`: block shape, shared-memory layout and
// the depth of the load pipeline.
#pragma once

#include "attend/head_dims.cuh"
#include "base/kinds.cuh"
#include "base/optional_field.cuh"
#include "pipeline/gate.cuh"
#include "pipeline/kv_element.cuh"
#include "pipeline/split_kv.cuh"
#include "shared/attend_block.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

/// Are tiles of K read as those of V, too?
LACUNA_OPTIONAL_FIELD(bool, has_v_of_k, kVOfK, false)

template <class Config>
__host__ __device__ constexpr MmaBlock mma_block() {
  return {Config::kTileQ,       Config::kTileK,
          Config::kStages,      Config::kHeadDim,
          head_dim_v<Config>(), Config::kQkBits,
          Config::kVBits,       Config::kGateScope == GateScope::kTile,
          Config::kSkipsVLoad,  has_e4m3_rows<Config>(),
          has_v_of_k<Config>()};
}

template <class Config>
struct AttendShape {
  static constexpr int kThreads = 32 * Config::kWarps;
  static constexpr int kKeyBlocks = Config::kTileK / 8;  ///< score accumulators, 8 keys each
  static constexpr int kHeadDimV = head_dim_v<Config>();
  /// Warps that share 16 query rows, and the columns of V and O that each of them has.
  static constexpr int kColumnParts = column_parts(kHeadDimV);
  static constexpr int kWarpColumns = kHeadDimV / kColumnParts;
  static constexpr int kRowWarps = Config::kTileQ / kWarpRows;  ///< of each part
  static constexpr int kColumnBlocks = kWarpColumns / 8;  ///< output accumulators, 8 columns each
  /// Steps of the product with V: weights of 16 keys, or 32 in 8 bits, are one `a` fragment.
  static constexpr int kKeySteps = Config::kTileK * Config::kVBits / 256;
  static constexpr bool kHasGate = Config::kGateScope != GateScope::kNone;
  static constexpr bool kVotesByTile = Config::kGateScope == GateScope::kTile;

  /// Weigh a tile before the product of the one before it, or after? Before: scores shrink to
  /// packed weights while no fragments of V are live, which above head dim 128 decides about
  /// spilling.
  static constexpr bool kWeighsFirst = Config::kHeadDim > 128 || Config::kVBits == 8;

  /// Do the query fragments stay in registers (at most 32 of them)?
  static constexpr bool kKeepsQueries = Config::kHeadDim <= 128;

  static constexpr bool kHasInt8Keys = Config::kQkBits == 8;
  static constexpr bool kHasE4m3Values = Config::kVBits == 8;
  /// Keys and values lie in memory as rows of e4m3, of which 16-bit tiles are made.
  static constexpr bool kHasE4m3Rows = has_e4m3_rows<Config>();

  using QueryTile = ByteTile<Config::kTileQ, Config::kHeadDim * Config::kQkBits / 8>;
  using KeyTile = ByteTile<Config::kTileK, Config::kHeadDim * Config::kQkBits / 8>;
  static constexpr bool kVOfK = has_v_of_k<Config>();
  /// e4m3 values lie transposed, a row for each channel. Values of keys are the first elements of
  /// their rows.
  using ValueTile =
      ByteTile<kHasE4m3Values ? kHeadDimV : Config::kTileK, kVOfK            ? KeyTile::kRowBytes
                                                            : kHasE4m3Values ? Config::kTileK
                                                                             : kHeadDimV * 2>;
  /// Where rows of O are put together: 16 rows for each warp, of its columns.
  using OutputTile = SmemTile<Config::kTileQ * kColumnParts, kWarpColumns>;

  /// Keys run kStages tiles ahead; values trail them by two, or wait for the gate's decision.
  static constexpr int kValueAhead = Config::kSkipsVLoad ? 0 : Config::kStages - 2;
  static constexpr int kValueSlots = mma_block<Config>().value_slots();
  /// Copy groups that may still be under way when a tile's barrier is reached.
  static constexpr int kPendingGroups =
      Config::kSkipsVLoad ? smaller(Config::kStages - 2, 1) : Config::kStages - 2;

  /// Tiles that products read.
  static constexpr int kKeyTiles = mma_block<Config>().key_tiles();
  static constexpr int kValueTiles = mma_block<Config>().value_tiles();
  static constexpr int kKeysOffset = mma_block<Config>().keys_offset();
  static constexpr int kValuesOffset = mma_block<Config>().values_offset();
  /// Where copies land: of e4m3 rows codes, behind the tiles that are made of them.
  static constexpr int kLandedKeyTiles = kVOfK ? kKeyTiles : Config::kStages;
  static constexpr int kLandedKeyBytes = kHasE4m3Rows ? KeyTile::kBytes / 2 : KeyTile::kBytes;
  static constexpr int kLandedValueBytes = kHasE4m3Rows ? ValueTile::kBytes / 2 : ValueTile::kBytes;
  static constexpr int kLandedKeysOffset =
      kHasE4m3Rows ? mma_block<Config>().tiles_end() : kKeysOffset;
  static constexpr int kLandedValuesOffset =
      kHasE4m3Rows ? kLandedKeysOffset + Config::kStages * kLandedKeyBytes : kValuesOffset;
  static constexpr int kVoteOffset = mma_block<Config>().votes_offset();
  static constexpr int kSmemBytes = mma_block<Config>().smem_bytes();

  static_assert(KeyTile::kBytes == mma_block<Config>().key_bytes() &&
                (kVOfK || ValueTile::kBytes == mma_block<Config>().value_bytes()));
  static_assert(!kVOfK || !(kHasInt8Keys || kHasE4m3Values || kHasE4m3Rows || Config::kSkipsVLoad),
                "rows of keys are those that values are taken of");
  static_assert(!kVotesByTile || GateVote<kRowWarps>::kBytes == mma_block<Config>().vote_bytes());
  static_assert(Config::kTileQ == kWarpRows * kRowWarps &&
                    kRowWarps * kColumnParts == Config::kWarps,
                "a warp owns 16 query rows, or a part of their columns");
  static_assert(kColumnParts == 1 || kHeadDimV % (64 * kColumnParts) == 0,
                "parts are equal, and begin where the permutation of a row does");
  static_assert(kColumnParts == 1 || !(kHasInt8Keys || kHasE4m3Values),
                "8-bit rows are not that wide");
  static_assert(Config::kTileK % 16 == 0, "the product with V takes 16 keys a step");
  static_assert(Config::kHeadDim * Config::kQkBits % 256 == 0 && kHeadDimV % 16 == 0,
                "a step of a product takes 32 bytes of a row");
  static_assert(Config::kStages >= 2, "a tile is loaded while another is in use");
  static_assert(!Config::kSkipsVLoad || (kVotesByTile && Config::kSkipsPv),
                "loads belong to the whole block, and PV needs them");
  static_assert(!Config::kSkipsExp || Config::kSkipsPv, "without weights there is no product");
  static_assert(Config::kSmemBytes == kSmemBytes, "the host plans the same block");

  static_assert(!kHasE4m3Rows || !(kHasInt8Keys || kHasE4m3Values),
                "rows of e4m3 become rows of 16 bits, one after the other");
  static_assert(Config::kQkBits == 16 || Config::kQkBits == 8, "int8 is the only integer format");
  static_assert(!kHasInt8Keys || 256 % Config::kTileQ == 0, "int8 rows are padded to 256");
  static_assert(!(kHasInt8Keys || kHasE4m3Values) || 256 % Config::kTileK == 0,
                "8-bit keys and values are padded to 256");
  static_assert(Config::kQkTileK % Config::kTileK == 0, "a key tile lies in one tile of groups");
  static_assert(!kHasInt8Keys || Config::kQkGroup != QuantGroup::kThread ||
                    Config::kTileK % 32 == 0,
                "the groups of a thread repeat every 32 keys");
  static_assert(kHasInt8Keys || !(Config::kHasRowBias || Config::kHasColumnBias),
                "biases restore what smoothing took before rounding to int8");
  static_assert(Config::kVBits == 16 || Config::kVBits == 8, "e4m3 is the only 8-bit format of V");
  static_assert(!kHasE4m3Values || Config::kTileK % 32 == 0,
                "the product with e4m3 V takes 32 keys a step");
  static_assert(!Config::kGathers ||
                    !(kHasInt8Keys || kHasE4m3Values || kHasGate || Config::kUsesLists),
                "gathered keys are 16-bit rows, chosen before and not while the block runs");
  static_assert(!SplitKv<Config>::kIsSplit || !(kHasGate || kHasE4m3Values || Config::kGathers),
                "gates and e4m3 weights depend on the tiles before; gathered keys are one list");
};

}  // namespace lacuna
