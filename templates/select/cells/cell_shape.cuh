// How a block of predict_cells shares out its work, and where things lie in shared and in scratch
// memory.
//
// A block takes kRows neighbouring rows of cells, those of several query tiles. Keys come in chunks
// of whole tiles; a chunk's products are sums over the tokens of a cell (antidiagonals; a mean is
// one vector) and slices of the head dimension, and each such part of queries and keys is a stage
// of its own: as many bytes as can be under way while two blocks share a multiprocessor. By
// mma.sync warps split the chunk's columns where a tile fits into half of them, so that a warp
// reads a key once for 32 rows; by wgmma a warp has 16 rows and all columns.
#pragma once

#include "base/kinds.cuh"
#include "base/optional_field.cuh"
#include "select/keep/decide_row.cuh"
#include "select/tokens/token_shape.cuh"
#include "shared/estimate_block.cuh"
#include "shared/select_block.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

/// Are cells compared by wgmma (sm_90a), or by mma.sync?
LACUNA_OPTIONAL_FIELD(bool, compares_by_wgmma, kByWgmma, false)

/// Cells lie one behind the other.
template <class Config>
struct CellShape : RowTokens<1> {
  static constexpr int kCell = Config::kCell, kCellK = Config::kCellK;
  static constexpr int kProducts = Config::kCellsAreMeans ? 1 : kCell;  ///< of tokens, of a logit
  static constexpr bool kIsLast = false, kRowsAreOneTile = false;
  static constexpr int kWarps = Config::kThreads / 32;
  static constexpr bool kByWgmma = compares_by_wgmma<Config>();

  static constexpr int kRows = Config::kRows;
  static constexpr int kWorkTiles = Config::kTileQ / kCell;
  static constexpr int kQueryTiles = kRows / kWorkTiles;

  static constexpr int kMostColumns = cell_columns(kByWgmma, Config::kCellsAreMeans);
  static constexpr int kTileColumns = Config::kTileK / kCellK;
  static constexpr int kColumns = kMostColumns / kTileColumns * kTileColumns;  ///< of a chunk
  static constexpr int kSplits = !kByWgmma && kTileColumns <= kMostColumns / 2 ? 2 : 1;
  static constexpr int kSplitColumns = kColumns / kSplits;       ///< of a warp
  static constexpr int kBlocks = kSplitColumns / 8;              ///< accumulators of 8 columns
  static constexpr int kSets = kRows / 16 / (kWarps / kSplits);  ///< of 16 rows, of a warp

  /// Elements of the head dimension in a stage.
  static constexpr int kDepth = common_divisor(Config::kHeadDim, kCellDepth);
  static constexpr int kSlices = Config::kHeadDim / kDepth;
  static constexpr int kParts = kProducts * kSlices;  ///< stages of a chunk

  template <int kBits>
  using QueryTile = SmemTile<kRows, kDepth>;
  template <int kBits>
  using KeyTile = SmemTile<kColumns, kDepth>;

  /// Means are few enough elements to hold those of the queries; other queries come with the keys.
  static constexpr bool kHoldsQueries = Config::kCellsAreMeans;
  static constexpr int kStages = cell_stages(kByWgmma, Config::kCellsAreMeans);
  static constexpr int kQueryBytes = kRows * kDepth * 2;               ///< of a slice
  static constexpr int kKeysOffset = kHoldsQueries ? 0 : kQueryBytes;  ///< in a stage
  static constexpr int kStageBytes = kKeysOffset + kMostColumns * kDepth * 2;
  static constexpr int kStagesOffset = kHoldsQueries ? kSlices * kQueryBytes : 0;
  static constexpr int kTailOffset = kStagesOffset + kStages * kStageBytes;

  /// Of a warp that decides a work tile: where the stages were.
  struct WarpSmem {
    WarpDecisionSmem<Config> decision;
    float p[kMostWarpTiles];
    float score[Config::kUsesScore ? kMostWarpTiles : 1];
  };
  static constexpr bool kWarpsDecide = static_cast<int>(sizeof(WarpSmem)) * kWarps <= kTailOffset;

  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  struct Tail {
    float offset[kRows];  ///< of each row, see CellBlock
    /// So far, of the rows in each half of each 16: registers are short while products are made.
    float largest[kIsRowMax && kHoldsQueries ? kWarps * kSets * 64 : 1];
    SelectScratch select;
  };

  /// Scratch of a block: of each row and tile the log-sum of its logits, and what they are reduced
  /// to; then for one work tile p, score and the memory to order it.
  static constexpr bool kHasLogSums = Config::kNormalise == Normalise::kSoftmax || Config::kSums;
  static constexpr bool kHasLogits =
      Config::kUsesScore || !Config::kSums || Config::kNormalise == Normalise::kNone;
  static constexpr int kLogitsPlane = kHasLogSums ? kRows : 0;
  static constexpr int kResultPlane = kLogitsPlane + (kHasLogits ? kRows : 0);
  static constexpr int kOrderPlane = kResultPlane + 2;
  static constexpr int kPlanes = kOrderPlane + (Config::kOrdersTiles ? 2 : 0);

  static_assert(kPlanes == cell_planes(kRows, kHasLogSums, kHasLogits, Config::kOrdersTiles));
  static_assert(kTailOffset == cell_tile_bytes(kByWgmma, kHoldsQueries, Config::kHeadDim, kDepth));
  static_assert(Config::kSmemBytes == 0 ||  // of blocks that share keys (cell_shares.cuh)
                kTailOffset + static_cast<int>(sizeof(Tail)) <= Config::kSmemBytes);
  static_assert(sizeof(OrderScratch<kWarps>) <= kTailOffset, "it lies where the stages were");
  static_assert(Config::kTileQ % kCell == 0 && kWorkTiles <= kRows && kRows % (16 * kWarps) == 0);
  static_assert(Config::kCellsAreMeans || kCell == kCellK);
  static_assert(!kIsRowMax || !Config::kSums);
  static_assert(Config::kTileK % kCellK == 0 && kTileColumns <= kMostColumns);
  static_assert(!kByWgmma || (kColumns == kMostColumns && kStagesOffset % 1024 == 0 &&
                              kStageBytes % 1024 == 0),
                "panels that wgmma reads");
  static_assert(kSplitColumns % kTileColumns == 0 && kSplitColumns % 16 == 0,
                "a warp has whole tiles and whole steps of 16 columns");
};

}  // namespace lacuna
