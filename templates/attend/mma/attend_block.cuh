// What a warp of the mma family keeps while it goes through the tiles of a work tile: its
// registers, and where things lie in the block's shared memory. The functions that work on it take
// it as `Block& at`: tile_loads.cuh, tile_scores.cuh, tile_gate.cuh, tile_weights.cuh,
// row_results.cuh.
#pragma once

#include "attend/mma/operands.cuh"
#include "attend/mma/quantised_logits.cuh"
#include "attend/mma/shape.cuh"
#include "attend/softmax.cuh"
#include "pipeline/gathered_keys.cuh"
#include "pipeline/tile_walk.cuh"
#include "tile/warp_product.cuh"

namespace lacuna {

/// `Logits`: PlainLogits, or QuantisedLogits of int8 products.
template <class ConfigOf, class HooksOf, class ArgsOf, class Logits>
struct AttendBlock {
  using Config = ConfigOf;
  using Hooks = HooksOf;
  using Args = ArgsOf;
  using Shape = AttendShape<Config>;
  using Element = typename Config::Element;
  using Operands = typename Config::Producer;
  using KeyTile = typename Shape::KeyTile;
  using ValueTile = typename Shape::ValueTile;
  using Scores = float[Shape::kKeyBlocks][4];
  using Weights = u32[Shape::kKeySteps][4];

  /// `index` and `tile`: locate_work_tile; `list`: the row's keys, where they are gathered.
  __device__ __forceinline__ AttendBlock(const Args& launch, unsigned char* block_smem, int index,
                                         const WorkTile& tile, const GatheredKeys& list)
      : args(launch),
        work_index(index),
        row(tile),
        gathered(list),
        warp(row_warp()),
        first_row(row.q0 + warp * kWarpRows),
        smem(block_smem),
        keys(Operands::keys(launch, row, list)),
        values(Operands::values(launch, row, list)),
        queue(launch, row, list, share_of_item<Config>(index)),
        vote(block_smem + Shape::kVoteOffset),
        logits(launch, row, warp),
        queries(shared_address(block_smem) + warp * kWarpRows * Shape::QueryTile::kRowBytes) {
    unit = Config::kHasScore ? 1.0f : launch.attend.scale;
    to_log2 = unit * kLog2E;
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[n][i] = 0.0f;
    }
  }

  /// Which 16 query rows of the work tile are this warp's; those of one part of the columns come
  /// before those of the next.
  __device__ __forceinline__ static int row_warp() {
    if constexpr (Shape::kColumnParts == 1) return warp_index();
    return warp_index() % Shape::kRowWarps;
  }
  /// Of V and O that are this warp's.
  __device__ __forceinline__ static int first_column() {
    if constexpr (Shape::kColumnParts == 1) return 0;
    return warp_index() / Shape::kRowWarps * Shape::kWarpColumns;
  }

  // Places of the t-th visited tile: where products read it, and where its copies land, which is
  // the same but for e4m3 rows.
  __device__ __forceinline__ u32 key_slot(int t) const {
    return shared_address(smem) + Shape::kKeysOffset + t % Shape::kKeyTiles * KeyTile::kBytes;
  }
  __device__ __forceinline__ u32 value_slot(int t) const {
    if constexpr (Shape::kVOfK) return key_slot(t);
    return shared_address(smem) + Shape::kValuesOffset + t % Shape::kValueTiles * ValueTile::kBytes;
  }
  __device__ __forceinline__ u32 landed_keys(int t) const {
    return shared_address(smem) + Shape::kLandedKeysOffset +
           t % Shape::kLandedKeyTiles * Shape::kLandedKeyBytes;
  }
  __device__ __forceinline__ u32 landed_values(int t) const {
    return shared_address(smem) + Shape::kLandedValuesOffset +
           t % Shape::kValueSlots * Shape::kLandedValueBytes;
  }
  /// The same place as generic memory.
  __device__ __forceinline__ unsigned char* bytes_at(u32 address) const {
    return smem + (address - shared_address(smem));
  }

  /// Weights are times 2 to this.
  static constexpr float kRangeLog2 = Shape::kHasE4m3Values ? kLog2E4m3Range : 0.0f;

  const Args& args;
  const int work_index;
  const WorkTile row;
  const GatheredKeys gathered;
  const int warp;
  const int first_row;  ///< of this warp
  unsigned char* const smem;
  const typename Operands::KeyLoader keys;
  const typename Operands::ValueLoader values;
  TileQueue<Config, Args, Config::kStages> queue;
  GateVote<Shape::kRowWarps> vote;
  Logits logits;
  float unit;                ///< scores -> natural units
  float to_log2;             ///< scores -> log2 domain
  bool has_weights = false;  ///< the last visited tile still has to be multiplied with its values
  QueryFragments<typename Shape::QueryTile, Shape::kKeepsQueries> queries;
  SoftmaxRows softmax;
  Weights weights;
  float output[Shape::kColumnBlocks][4];
  int last_first_key = 0;  ///< of e4m3 rows: of the tile visited last
};

}  // namespace lacuna
