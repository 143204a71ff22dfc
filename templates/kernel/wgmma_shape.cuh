// What follows from a Config for the wgmma family of `attend`: roles, shared memory and the
// barriers between the roles. The host's formula (compiler/target) is the same.
//
// One producer warpgroup, of which one warp works, and kWarpgroups consumer warpgroups of 64 query
// rows each. A step takes kStepKeys keys: kStepTiles tiles of the mask's or the list's walk.
//
//   producer                                   consumers
//   walks over rows of tiles and their tiles
//   q_empty[b]  <- one arrival a warp -------  O of the buffer's last row is stored
//   q_full[b]   -- Q of all warpgroups ----->  first step of a row with tiles
//   k_empty[s]  <- one arrival a warp -------  S = Q K is complete
//   k_full[s]   -- K, and the message ------>  which tiles these are, and whether the row ends
//   v_empty[s]  <- one arrival a warp -------  O += P V is complete
//   v_full[s]   -- V ----------------------->
//
// Slots and phases run on from row to row, in step on both sides. K runs one step ahead of V: the
// order of loads is K_0 (V of the row before) Q K_1 V_0 K_2 V_1 ..., that of use. A row without a
// tile takes a step too, whose message says so and whose slots stay as they are. The producer alone
// asks which row comes next; a last message says that there is none.
#pragma once

#include "arch/mbarrier.cuh"
#include "arch/warpgroup.cuh"
#include "base/select.cuh"
#include "gate/gate.cuh"
#include "kernel/ring_position.cuh"
#include "kernel/tile_walk.cuh"
#include "kernel/wgmma_gather_columns.cuh"
#include "kernel/wgmma_slots.cuh"
#include "loader/gather_panels.cuh"

namespace lacuna {

/// What the producer says of a step.
template <int kTiles>
struct alignas(8) StepMessage {
  enum Flags : u32 {
    kLastOfRow = 1,
    kEnd = 2,      ///< no step: there is no other row
    kUnusual = 4,  ///< a tile needs the mask or is missing, or reports are wanted
  };
  u32 flags;
  TileRef tiles[kTiles];  ///< those after the first may be missing

  __device__ __forceinline__ bool has(Flags flag) const { return (flags & flag) != 0; }
};

template <class Config>
struct WgmmaShape {
  static constexpr int kConsumerWarps = 4 * Config::kWarpgroups;
  static constexpr int kConsumerThreads = kWarpgroupThreads * Config::kWarpgroups;
  static constexpr int kStepTiles = Config::kStepKeys / Config::kTileK;
  static constexpr int kColumnBlocks = Config::kHeadDim / 8;
  /// Scores of a step come in one group, or in one for each tile that a gate decides about.
  static constexpr int kGroupKeys =
      Config::kGateScope != GateScope::kNone ? Config::kTileK : Config::kStepKeys;
  static constexpr int kGroups = Config::kStepKeys / kGroupKeys;
  static constexpr int kGroupBlocks = kGroupKeys / 8;  ///< score accumulators of a group
  static constexpr int kGroupTiles = kGroupKeys / Config::kTileK;
  /// Queries stay in registers where there is room, which saves reading them for each product.
  static constexpr bool kKeepsQueries = Config::kHeadDim <= 128 && Config::kWarpgroups == 2;
  /// Two warpgroups find a rhythm of their own; three, which are short of registers for their own
  /// queries and of room between products, are better off in order.
  static constexpr bool kTakesTurns = Config::kWarpgroups > 2;
  static constexpr bool kHasE4m3Values = Config::kVBits == 8;
  static constexpr bool kHas8Bits = Config::kQkBits == 8;
  static constexpr bool kHasGate = Config::kGateScope != GateScope::kNone;
  static constexpr bool kVotesByTile = Config::kGateScope == GateScope::kTile;
  /// The next scores are under way while a tile is decided about (kernel/wgmma_ahead_consumer.cuh).
  static constexpr bool kLooksAhead =
      kVotesByTile && !Config::kGateReadsGap && Config::kHeadDim <= 128 && Config::kStepKeys == 64;

  /// Registers of a thread: 65536 are shared out.
  static constexpr int kProducerRegisters = Config::kGathers           ? 40
                                            : Config::kWarpgroups == 2 ? 24
                                                                       : 32;
  static constexpr int kConsumerRegisters = Config::kGathers           ? 232
                                            : Config::kWarpgroups == 2 ? 240
                                                                       : 160;

  using QueryTile = PanelTile<kWarpgroupRows, Config::kHeadDim>;  ///< of one warpgroup; then its O
  using StepTile = PanelTile<Config::kStepKeys, Config::kHeadDim>;
  /// kRows rows of the head's queries or keys, kBoxRows of a box.
  template <int kRows, int kBoxRows>
  using RowSlot = typename Select<Config::kQkBits == 8, ByteSlot<kRows, kBoxRows, Config::kHeadDim>,
                                  PanelSlot<kRows, kBoxRows, Config::kHeadDim>>::Type;
  using QuerySlot = RowSlot<kWarpgroupRows, kWarpgroupRows>;
  using KeySlot = RowSlot<Config::kStepKeys, Config::kTileK>;
  using ValueSlot =
      typename Select<kHasE4m3Values,
                      ColumnSlot<Config::kStepKeys, Config::kTileK, Config::kHeadDim>,
                      PanelSlot<Config::kStepKeys, Config::kTileK, Config::kHeadDim>>::Type;
  static constexpr int kKeyRowBytes =
      smaller(Config::kHeadDim * Config::kQkBits / 8, kPanelRowBytes);
  using Message = StepMessage<kStepTiles>;
  /// Tiles are decided about together, and late, where that is about nothing but their products
  /// with V.
  static constexpr bool kVotesOnSteps = kHasGate && kHas8Bits && !Config::kSkipsExp;
  /// What a warp says at a time.
  using Vote = typename Select<
      kLooksAhead, TileMaximum,
      typename Select<kVotesOnSteps, StepStatistics<kGroups>, GateStatistics>::Type>::Type;
  /// The producer is ahead by less rows than steps; it writes a row when it may load its first
  /// keys.
  static constexpr int kRowSlots = 2 * Config::kStages;

  static constexpr int kQueryBytes = Config::kWarpgroups * QueryTile::kBytes;
  static constexpr int kKeysOffset = Config::kQueryBuffers * kQueryBytes;
  static constexpr int kValuesOffset = kKeysOffset + Config::kStages * KeySlot::kBytes;
  static constexpr int kControlOffset = kValuesOffset + Config::kStages * ValueSlot::kBytes;
  /// Whether lanes copy rows into slots; else the copy engine.
  static constexpr bool kHasCopiedRows = Config::kGathers && kCopiesRows<Config::kKeepK>;
  /// Arrivals that fill a slot: the loads; of keys also the message, unless that comes first.
  static constexpr int kLoadArrivals = kHasCopiedRows ? 32 : 1;
  static constexpr int kKeyArrivals = kLoadArrivals + (Config::kGathers ? 1 : 0);
  static constexpr int kControlBytes = 1024 + (Config::kGathers ? kColumnRingBytes : 0);
  static constexpr int kSmemBytes = kControlOffset + kControlBytes;

  static_assert(Config::kTileQ == kWarpgroupRows * Config::kWarpgroups, "64 rows a warpgroup");
  static_assert(Config::kStepKeys % Config::kTileK == 0, "a step takes whole tiles");
  static_assert(Config::kTileK % 64 == 0, "masks take 64 keys at a time");
  static_assert(Config::kStages >= 2, "a step is loaded while another is in use");
  static_assert(Config::kQkBits == 16 || Config::kQkBits == 8, "int8 is the only integer format");
  static_assert(Config::kVBits == 16 || Config::kVBits == 8, "e4m3 is the only 8-bit format of V");
  static_assert(!kHas8Bits || (Config::kHeadDim <= 128 && Config::kWarpgroups == 2),
                "the product of e4m3 values has registers of its own");
  static_assert(kHas8Bits || !kHasE4m3Values, "e4m3 values come with int8 keys");
  static_assert(!kHas8Bits || !Config::kGathers, "gathered keys are 16-bit rows");
  static_assert(Config::kSmemBytes == kSmemBytes, "the host's formula is another");
};

/// Barriers, messages and votes, behind the tiles.
template <class Config>
struct WgmmaControl {
  using Shape = WgmmaShape<Config>;
  unsigned long long q_full[Config::kQueryBuffers], q_empty[Config::kQueryBuffers];
  unsigned long long k_full[Config::kStages], k_empty[Config::kStages];
  unsigned long long v_full[Config::kStages], v_empty[Config::kStages];
  typename Shape::Message messages[Config::kStages];
  TileRow rows[Shape::kRowSlots];
  typename Shape::Vote votes[2][Shape::kConsumerWarps];  ///< in turns
  unsigned long long voted[2][Config::kWarpgroups];      ///< barriers: its warps have published
  ColumnRing<Config::kGathers> ring;
};

/// Addresses of one block's shared memory.
template <class Config>
struct WgmmaSmem {
  using Shape = WgmmaShape<Config>;
  using Control = WgmmaControl<Config>;
  static_assert(sizeof(Control) <= Shape::kControlBytes);

  unsigned char* dynamic;  ///< all of it; at a multiple of 1024, or the swizzles would be others

  __device__ __forceinline__ u32 tiles() const { return shared_address(dynamic); }
  __device__ __forceinline__ Control* control() const {
    return reinterpret_cast<Control*>(dynamic + Shape::kControlOffset);
  }

  __device__ __forceinline__ u32 queries(u32 buffer, int warpgroup) const {
    return tiles() + buffer * Shape::kQueryBytes + warpgroup * Shape::QueryTile::kBytes;
  }
  __device__ __forceinline__ u32 keys(u32 slot) const {
    return tiles() + Shape::kKeysOffset + slot * Shape::KeySlot::kBytes;
  }
  __device__ __forceinline__ u32 values(u32 slot) const {
    return tiles() + Shape::kValuesOffset + slot * Shape::ValueSlot::kBytes;
  }
  __device__ __forceinline__ static Mbarrier barrier(const unsigned long long& word) {
    return {shared_address(&word)};
  }

  /// By one thread.
  __device__ __forceinline__ void init_barriers() const {
    for (int n = 0; n < Config::kQueryBuffers; ++n) {
      barrier(control()->q_full[n]).init(1);
      barrier(control()->q_empty[n]).init(Shape::kConsumerWarps);
    }
    for (int n = 0; n < Config::kStages; ++n) {
      barrier(control()->k_full[n]).init(Shape::kKeyArrivals);
      barrier(control()->k_empty[n]).init(Shape::kConsumerWarps);
      barrier(control()->v_full[n]).init(Shape::kLoadArrivals);
      barrier(control()->v_empty[n]).init(Shape::kConsumerWarps);
    }
    for (int w = 0; w < Config::kWarpgroups; ++w) {
      barrier(control()->voted[0][w]).init(4);
      barrier(control()->voted[1][w]).init(4);
    }
    if constexpr (Config::kGathers) {
      for (int n = 0; n < control()->ring.kSteps; ++n) {
        barrier(control()->ring.step_full[n]).init(1);
        barrier(control()->ring.step_empty[n]).init(2);  // keys and values
      }
    }
    fence_mbarrier_init();
  }
};

}  // namespace lacuna
