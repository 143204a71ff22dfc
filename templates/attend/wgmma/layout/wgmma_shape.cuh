// What follows from a Config for the wgmma family of `attend`: roles, shared memory and the
// barriers between the roles. Sizes that the host plans with are in shared/attend_block.cuh.
//
// One producer warpgroup, of which one warp works unless said otherwise, and kWarpgroups consumer
// warpgroups of 64 queries each. A step takes kStepKeys keys: kStepTiles tiles of the mask's or the
// list's walk. "Row" is short for work tile: all tiles that its queries see.
//
//   producer                                   consumers
//   walks over work tiles and their tiles
//   q_empty[b]  <- one arrival a warp -------  O of the work tile that had the buffer is stored
//   q_full[b]   -- Q of all warpgroups ----->  first step of a row with tiles; ChainedConsumer:
//                                              before O of the row before is stored
//   k_empty[s]  <- one arrival a warp -------  S = Q K is complete
//   k_full[s]   -- K, and the message ------>  which tiles these are, and whether the row ends;
//                                              with int8 keys, the biases of these, if they have
//                                              any
//   v_empty[s]  <- one arrival a warp -------  O += P V is complete
//   v_full[s]   -- V ----------------------->
//
// There are kStages slots of K and kValueStages of V; a step takes the next of each.
// Slots and phases are counted on from row to row, by both roles alike. K runs one step ahead of V:
// loads come in the order in which they are used, K_0 (V of the row before) Q K_1 V_0 K_2 V_1 ... A
// row without a tile takes a step too, whose message says so and whose slots stay as they are. The
// producer alone asks which row comes next; a last message says that there is none. Of split work
// tiles (pipeline/split_kv.cuh) all this is said of an item, which has a share of its row's tiles.
//
// Of sequences four warps work (producers/sequence_producer.cuh): two bring K and two V, in turns.
// The one that leads finds the rows:
//
//   leading warp               other warps of the producer
//   row_noted[r] -- the row -> its steps, and which sequence they are of
//
// Where a gate is decided a step ahead (kLooksAhead), a second warp of the producer decides about
// tiles and loads V, of those alone that count. noted, polled and decided are of each slot of K:
//
//   producer: keys         producer: decisions, values         consumers
//   k_full[s]   -- the message ->                              (k_full, k_empty as above)
//   noted[s]    <- one arrival -  the message is read: the
//                                 slot's next may be written
//                        polled[s]   <- one arrival a warp --  its largest scores are published
//                        decided[s]  -- chosen[s] ---------->  which parts of the step count
//                        v_full[v]   -- V of these --------->  O += P V; of a step of which none
//                                                              counts nothing, and no slot of V
//
// V of a row's first step does not wait for the decision, because its first tile counts
// (producers/tile_gate_producer.cuh). Other gates, gathered columns and codes of e4m3 have barriers
// of their own, described in gates/gate_votes.cuh, producers/gather_producer.cuh and
// layout/code_places.cuh.
//
// Where a query tile has the 64 rows of one warpgroup (kWorkTiles: two), each warpgroup has a work
// tile and a list of its own, and a message of its own in each slot. Steps go through the tiles of
// both lists (pipeline/two_list_walk.cuh):
//
//   step                         0      1      2      3      4
//   tiles of warpgroup 0's row   S0     S1     -      -      S4
//   tiles of warpgroup 1's row   S0     -      S2     S3     S4
//
// A warpgroup that has no tile of a step skips it. It first finishes the product with V that is
// outstanding, O += P V of step 1 here, and gives that slot back: V of step 1 + kStages waits for
// it, and behind it all further K. Then, of each step that it skips:
//
//   k_full[n]    waits for the message: no tile, or the next row
//   k_empty[n]   arrives
//   v_full[n]    waits, after k_full[n + 1], whose load was issued before
//   v_empty[n]   arrives; before that wait, the arrival would count for the slot's use before
//
// Its next tile is like the first of a row: S alone, then S' ahead of O += P V as before. With int8
// keys it passes on up to kValueStages - 1 steps before that, and goes on as if there had been none
// if one with a tile of its own follows: loads come in order, so that V of these needs no slot that
// waits for the product. Queries
// are loaded even if neither row has a tile: q_full is waited for before q_empty, for the same
// reason.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/warpgroup.cuh"
#include "attend/head_dims.cuh"
#include "attend/wgmma/layout/code_places.cuh"
#include "attend/wgmma/layout/gather_columns.cuh"
#include "attend/wgmma/layout/slots.cuh"
#include "base/optional_field.cuh"
#include "loader/gather_panels.cuh"
#include "pipeline/gate_policy.cuh"
#include "pipeline/kv_element.cuh"
#include "pipeline/ring_position.cuh"
#include "pipeline/sequence_tile.cuh"
#include "pipeline/tile_walk.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

/// What the producer says of a step.
template <int kTiles>
struct alignas(8) StepMessage {
  enum Flags : u32 {
    kLastOfRow = 1,
    kEnd = 2,                ///< no step: there is no other row
    kNeedsMaskOrReport = 4,  ///< a tile needs the mask or is missing, or reports are wanted
    kSkipped = 8,            ///< none of several warpgroups' own tiles: the step is passed on
    kFirstOfRow = 16,
    kLeavesSome = 32,  ///< gathered keys of which the warpgroup's work tile does not keep all
  };
  static constexpr int kRowShift = 8;  ///< the row's place in WgmmaControl::rows, above the flags
  u32 flags;
  TileRef tiles[kTiles];  ///< those after the first may be missing

  __device__ __forceinline__ bool has(Flags flag) const { return (flags & flag) != 0; }
};

template <class Config>
__host__ __device__ constexpr WgmmaBlock wgmma_block() {
  return {kWarpgroupRows * Config::kWarpgroups,
          Config::kQueryBuffers,
          Config::kStages,
          Config::kValueStages,
          Config::kStepKeys,
          Config::kHeadDim,
          head_dim_v<Config>(),
          Config::kQkBits,
          Config::kVBits,
          Config::kGathers ? column_ring_bytes(Config::kWorkTiles) : 0,
          has_sequence_tiles<Config>(),
          code_places<Config>(),
          Config::kHasColumnBias,
          Config::kGateScope != GateScope::kNone};
}

/// Where the values of a step lie, counted from the block's first.
template <class Config,
          bool kIsSized = has_sequence_tiles<Config>() && (Config::kValueStages > Config::kStages)>
struct ValueRing {
  using Position = RingPosition<Config::kValueStages>;
  template <class Args>
  __device__ __forceinline__ static Position at(const Args&, u32 count) {
    return {count};
  }
};
/// Of sequences that have one place more than keys: how many a launch uses follows from how many
/// queries share keys (compiler/lower/attend/schedule.cpp).
template <class Config>
struct ValueRing<Config, true> {
  using Position = LaunchRingPosition;
  template <class Args>
  __device__ __forceinline__ static Position at(const Args& args, u32 count) {
    return {count, static_cast<u32>(args.batch_schedule.value_places),
            static_cast<u32>(args.batch_schedule.value_places_inverse)};
  }
};

/// False: products read queries from shared memory.
LACUNA_OPTIONAL_FIELD(bool, may_keep_queries, kKeepsQueries, true)

template <class Config>
struct WgmmaShape {
  static constexpr int kConsumerWarps = 4 * Config::kWarpgroups;
  static constexpr int kConsumerThreads = kWarpgroupThreads * Config::kWarpgroups;
  /// Does each warpgroup have a work tile of its own?
  static constexpr bool kOwnRows = Config::kWorkTiles > 1;
  /// And has it columns of its own, of those that are gathered for all?
  static constexpr bool kOwnColumns = kOwnRows && Config::kGathers;
  static constexpr int kStepTiles = Config::kStepKeys / Config::kTileK;
  static constexpr int kHeadDimV = head_dim_v<Config>();
  static constexpr bool kHasE4m3Values = Config::kVBits == 8;
  static constexpr bool kHas8Bits = Config::kQkBits == 8;
  using GatePolicy = typename Config::GatePolicy;
  static constexpr bool kHasGate = GatePolicy::kExists;
  /// A tile of one warpgroup is decided about by it alone.
  static constexpr bool kVotesByTile = Config::kGateScope == GateScope::kTile && !kOwnRows;
  /// The next scores are under way while tiles are decided about, and V follows the decisions
  /// (attend/wgmma/consumers/tile_gate_consumer.cuh).
  static constexpr bool kLooksAhead = GatePolicy::kLooksAhead;
  /// What is weighed and multiplied with V at a time then: a tile, or half of one.
  static constexpr int kPartKeys = 64;
  /// Each warp votes on every tile, and waits for the votes of others only if its own rows leave it
  /// undecided, and not before the product with V is due
  /// (attend/wgmma/consumers/late_decision.cuh). Warps that do not wait run ahead by the tiles of
  /// kStages steps at most.
  static constexpr bool kWarpsKnow = GatePolicy::kHasTileVotes;
  /// Scores of a step come in one group, or in one for each tile that is decided about before its
  /// exponentials.
  static constexpr int kGroupKeys =
      kHasGate && !kLooksAhead && !kWarpsKnow ? Config::kTileK : Config::kStepKeys;
  static constexpr int kGroups = Config::kStepKeys / kGroupKeys;
  /// What is multiplied with V or left out: a tile that a gate decides about, or a group.
  static constexpr int kParts = kWarpsKnow ? kStepTiles : kGroups;
  static constexpr int kPartOfStepKeys = Config::kStepKeys / kParts;
  static constexpr int kGroupBlocks = kGroupKeys / 8;  ///< score accumulators of a group
  static constexpr int kGroupTiles = kGroupKeys / Config::kTileK;
  /// Queries stay in registers where there is room, which saves reading them for each product.
  static constexpr bool kKeepsQueries = may_keep_queries<Config>() && Config::kHeadDim <= 128 &&
                                        Config::kWarpgroups == 2 && !kLooksAhead;
  /// Warpgroups issue their products in turns. Two find a rhythm of their own, unless votes of one
  /// hold up the other; three, which are short of registers for their own queries and of room
  /// between products, are better off in order.
  static constexpr bool kPingPong = Config::kWarpgroups > 2 || (kWarpsKnow && !kOwnRows);

  /// Keys and values come as codes, of which the producer's warps make 16-bit rows
  /// (attend/wgmma/producers/converting_producer.cuh).
  static constexpr bool kMakesRows = has_e4m3_rows<Config>();

  /// The producer finds tiles by the mask of one launch, and not in lists or for sequences.
  static constexpr bool kWalksMask =
      !(Config::kUsesLists || Config::kGathers || has_sequence_tiles<Config>());

  using QueryTile = PanelTile<kWarpgroupRows, Config::kHeadDim>;  ///< of one warpgroup
  using OutputTile = PanelTile<kWarpgroupRows, kHeadDimV>;        ///< in the place of its queries
  /// Accumulators of the output, 8 columns each: of whole panels of V, as wgmma multiplies them.
  static constexpr int kColumnBlocks = kHeadDimV / 8;
  using StepTile = PanelTile<Config::kStepKeys, Config::kHeadDim>;
  using QuerySlot = typename Config::QuerySlot;  ///< layout/slots.cuh
  using KeySlot = typename Config::KeySlot;
  using ValueSlot = typename Config::ValueSlot;
  /// Codes of which the rows of these slots are made.
  using KeyCodes = CodeSlot<Config::kStepKeys, Config::kTileK, Config::kHeadDim>;
  using ValueCodes = CodeSlot<Config::kStepKeys, Config::kTileK, kHeadDimV>;
  static constexpr int kKeyRowBytes =
      smaller(Config::kHeadDim * Config::kQkBits / 8, kPanelRowBytes);
  using Message = StepMessage<kStepTiles>;
  using Row = typename Config::Row;  ///< a work tile, or a SequenceTile
  /// Warps of the producer's warpgroup that load. What they execute delays the consumers' warps of
  /// their schedulers, and with one of these its whole warpgroup. Loads of sequences are the
  /// longest, so two warps bring keys and two bring values, in turns
  /// (producers/sequence_producer.cuh). Codes are half as many bytes, and the other warps make rows
  /// of them.
  static constexpr bool kHasSequenceProducer =
      has_sequence_tiles<Config>() && !kMakesRows && !kOwnRows && !kLooksAhead && !Config::kGathers;
  static constexpr int kProducerWarps = kHasSequenceProducer ? 4 : 1;
  static constexpr int kWarpsOfOperand = kHasSequenceProducer ? 2 : 1;
  /// Tiles are decided about together, and when their product is due
  /// (attend/wgmma/gates/step_votes.cuh).
  static constexpr bool kVotesOnSteps = GatePolicy::kHasStepVotes;
  static constexpr bool kHasBitVotes = kVotesOnSteps || kWarpsKnow;
  using Vote = typename GatePolicy::template Vote<kStepTiles>;
  static constexpr int kVoteSlots = GatePolicy::vote_slots(Config::kStages);
  static constexpr int kDecisionSlots = kLooksAhead ? Config::kStages : 1;
  /// Places for rows. The producer writes a row before it waits for the slot of the row's first
  /// keys. By then it has waited for the slot of the step before, so consumers have reached the row
  /// of the step kStages earlier. From that row on at most kStages + 1 rows are in use, and the new
  /// one is written. Of codes the rows of steps that wait to be converted are in use, too: half as
  /// many as there are places. Where warps take steps in turns, the leading one has waited for the
  /// slot of the step before or of the one before that, and a warp that brings values may not yet
  /// have read the rows of the two steps before the consumers' keys: three more.
  static constexpr int kRowSlots = wgmma_block<Config>().row_slots();
  static_assert(Config::kStages + 2 + ceil_div(code_places<Config>(), 2) +
                        (kProducerWarps > 1 ? 3 : 0) <=
                    kRowSlots,
                "a row is read until its results are written");

  static constexpr int kQueryBytes = wgmma_block<Config>().query_bytes();
  /// Of one warpgroup: its queries, and then its rows of O.
  static constexpr int kQueryPlaceBytes = kQueryBytes / Config::kWarpgroups;
  static constexpr int kKeysOffset = wgmma_block<Config>().keys_offset();
  static constexpr int kValuesOffset = wgmma_block<Config>().values_offset();
  static constexpr int kCodesOffset = wgmma_block<Config>().codes_offset();
  static constexpr int kCodePlaceBytes = wgmma_block<Config>().code_place_bytes();
  static constexpr int kControlOffset = wgmma_block<Config>().control_offset();
  /// Whether lanes copy rows into slots; else the copy engine.
  static constexpr bool kHasCopiedRows = Config::kGathers && kCopiesRows<Config::kKeepK>;
  /// Values of a step that lanes copy where they do; boxes bring the others.
  static constexpr int kCopiedValues = Config::kStepKeys / 4 * 3;
  /// Warps that load: keys; values, or those that are copied and those that are not.
  static constexpr int kGatherLoaders = kHasCopiedRows ? 3 : 2;
  /// Arrivals that fill a slot: the loads; of keys also the message, unless that comes first. Where
  /// rows are made of codes, WarpsOfLaunch says it.
  static constexpr int kKeyArrivals = (kHasCopiedRows ? 32 : 1) + (Config::kGathers ? 1 : 0);
  static constexpr int kValueArrivals = kHasCopiedRows ? 32 + 1 : 1;
  static constexpr int kSmemBytes = wgmma_block<Config>().smem_bytes();

  static_assert(Config::kTileQ * Config::kWorkTiles == kWarpgroupRows * Config::kWarpgroups,
                "64 rows a warpgroup");
  static_assert(!kOwnRows || (Config::kWorkTiles == Config::kWarpgroups &&
                              (Config::kUsesLists || Config::kGathers)),
                "work tiles that a block takes together have lists, of tiles or of columns");
  static_assert(!(kOwnColumns && kHasGate), "a gate's tiles are those of one work tile");
  static_assert(kHasGate == (Config::kGateScope != GateScope::kNone), "a gate has a policy");
  static_assert(!kLooksAhead || (kVotesByTile && !Config::kGateReadsGap && Config::kSkipsExp &&
                                 Config::kSkipsPv && !kHas8Bits && !Config::kGathers &&
                                 Config::kHeadDim <= 128 && Config::kWarpgroups == 2),
                "a gate decided ahead reads a tile's largest score, of 16-bit operands");
  static_assert(!kVotesOnSteps || (kHas8Bits && !Config::kSkipsExp),
                "votes on steps are in time for the product with V, not for exponentials");
  static_assert(!kWarpsKnow || !kHas8Bits, "int8 consumers vote on steps");
  static_assert(Config::kStepKeys % Config::kTileK == 0, "a step takes whole tiles");
  static_assert(Config::kTileK % 32 == 0, "rows of a box repeat no swizzle half-way");
  static_assert(!kHasGate || Config::kTileK % 64 == 0, "a product of its own for each tile");
  static_assert(Config::kStages >= 2, "a step is loaded while another is in use");
  static_assert(Config::kValueStages >= Config::kStages || kLooksAhead,
                "steps without values take a place of their own else");
  static_assert(Config::kQkBits == 16 || Config::kQkBits == 8, "int8 is the only integer format");
  static_assert(Config::kVBits == 16 || Config::kVBits == 8, "e4m3 is the only 8-bit format of V");
  static_assert(OutputTile::kBytes <= kQueryPlaceBytes && QueryTile::kBytes <= kQueryPlaceBytes,
                "rows of O lie where queries did");
  static_assert((Config::kHeadDim % kPanelElements == 0 && kHeadDimV == Config::kHeadDim) ||
                    !(kHas8Bits || Config::kGathers),
                "integers and gathered keys are of whole panels of one width");
  static_assert(!kHas8Bits || (Config::kHeadDim <= 128 && Config::kWarpgroups == 2),
                "the product of e4m3 values has registers of its own");
  static_assert(kHas8Bits || !kHasE4m3Values, "e4m3 values come with int8 keys");
  static_assert(!kHas8Bits || !Config::kGathers, "gathered keys are 16-bit rows");
  static_assert(!SplitKv<Config>::kIsSplit || !(kHasGate || kHasE4m3Values || Config::kGathers),
                "gates and e4m3 weights depend on the tiles before; gathered keys are one list");
  static_assert(!packs_heads<Config>() || !(kHasGate || Config::kUsesLists || kHas8Bits),
                "what is decided or prepared for one head has work tiles of one head");
  static_assert(!has_sequence_tiles<Config>() || !SplitKv<Config>::kIsSplit,
                "rows of sequences are split into items");
  static_assert(!kMakesRows || !(kHas8Bits || kLooksAhead || kOwnRows || Config::kGathers),
                "16-bit rows are made of codes for the producer of one work tile");
  static_assert(Config::kSmemBytes == kSmemBytes, "the host plans the same block");
  static_assert(kValuesOffset == kKeysOffset + Config::kStages * KeySlot::kBytes &&
                kCodesOffset == kValuesOffset + Config::kValueStages * ValueSlot::kBytes);
};

}  // namespace lacuna
