// How a block of predict_tokens shares out its work, and where things lie in shared memory.
//
// Keys come in chunks of up to 64, whole key tiles; the next chunk is loaded while one is in use.
// Tiles of more columns are chunks by themselves, for which there is one slot. A warp owns 16 rows;
// where the tile has fewer than 16 for each warp, several warps share rows and split the columns of
// the chunk.
#pragma once

#include "base/kinds.cuh"
#include "base/optional_field.cuh"
#include "select/keep/select.cuh"
#include "shared/estimate_block.cuh"
#include "tile/smem_tile.cuh"

namespace lacuna {

__host__ __device__ constexpr int common_divisor(int a, int b) {
  return b == 0 ? a : common_divisor(b, a % b);
}
/// The largest divisor of n up to `most`.
__host__ __device__ constexpr int divisor_up_to(int n, int most) {
  return n % most == 0 ? most : divisor_up_to(n, most - 1);
}

/// Tokens from one row to the next.
LACUNA_OPTIONAL_FIELD(int, row_stride, kRowStride, 1)
/// Elements of an index vector; 0 where q and k are compared.
LACUNA_OPTIONAL_FIELD(int, index_dim, kIndexDim, 0)

/// Rows of the whole sequence and the tokens that they are, or begin with: kStep from one to the
/// next.
template <int kStep>
struct RowTokens {
  static constexpr int kRowStride = kStep;
  __device__ __forceinline__ static constexpr int token_of(int row) { return row * kStep; }
  /// Of the first so many tokens.
  __device__ __forceinline__ static int rows_of(int tokens) { return ceil_div(tokens, kStep); }
};

template <class Config>
struct TokenShape : RowTokens<row_stride<Config>()> {
  using Rows = RowTokens<row_stride<Config>()>;
  static constexpr int kThreads = Config::kThreads;
  static constexpr int kWarps = kThreads / 32;
  static constexpr bool kIsLast = Config::kLastRows > 0;
  static constexpr int kCell = 1, kCellK = 1;  ///< tokens of a row, of a column
  static constexpr bool kRowsAreOneTile = true;
  static constexpr int kProducts = 1;  ///< of tokens, whose mean a logit is

  static constexpr int kWorkTiles = kIsLast ? Config::kLastRows : Config::kTileQ / Rows::kRowStride;
  static constexpr int kTileColumns = Config::kTileK;
  static constexpr int kStages = kTileColumns <= 64 ? 2 : 1;
  static constexpr int kColumns =  ///< of a chunk
      token_chunk_columns(kTileColumns);
  static constexpr int kTiles = kColumns / kTileColumns;

  static constexpr int kRowSets = Config::kRows / 16;
  static constexpr int kRowWarps = smaller(kWarps, kRowSets);
  static constexpr int kSets = ceil_div(kRowSets, kRowWarps);  ///< of 16 rows, of a warp
  static constexpr int kSplits = divisor_up_to(kColumns / 16, kWarps / kRowWarps);
  static constexpr int kSplitColumns = kColumns / kSplits;  ///< of a warp
  static constexpr int kBlocks = kSplitColumns / 8;         ///< accumulators of 8 columns

  /// Columns that a warp reduces to one number: of one tile.
  static constexpr int kUnit = common_divisor(kTileColumns, kSplitColumns);
  static constexpr int kSlots = kColumns / kUnit;  ///< such numbers of a chunk and 16 rows

  static constexpr int kWidth =  ///< elements of what is compared
      index_dim<Config>() > 0 ? index_dim<Config>() : Config::kHeadDim;
  template <int kBits>
  using QueryTile = ByteTile<Config::kRows, kWidth*(kBits == 16 ? 2 : 1)>;
  template <int kBits>
  using KeyTile = ByteTile<kColumns, kWidth*(kBits == 16 ? 2 : 1)>;

  /// One number of a slot from each warp: reduced weights, then reduced logits.
  struct Parts {
    float weight[kRowWarps][kSlots];
    float score[Config::kUsesScore ? kRowWarps : 1][kSlots];
  };
  /// Largest logit and sum of weights of each row, from each split.
  struct RowSums {
    float largest[kSplits][kRowWarps * kSets * 16];
    float sum[kSplits][kRowWarps * kSets * 16];
  };
  struct Tail {
    float offset[kRowWarps * kSets * 16];  ///< of each row, see TokenBlock
    int excluded[2][kTiles];               ///< of the chunk; two, used alternately
    SelectScratch select;
  };

  /// Queries, keys, tail.
  static constexpr int kQueryBytes = Config::kRows * kWidth * 2;
  static constexpr int kKeyBytes = kColumns * kWidth * 2;
  static constexpr int kKeysOffset = kQueryBytes;
  static constexpr int kTailOffset = kKeysOffset + kStages * kKeyBytes;
  /// Parts lie behind the tail, or else where the chunk was, at the price of a barrier.
  static constexpr int kPartsOffset = kTailOffset + static_cast<int>(sizeof(Tail));
  static constexpr bool kHasParts =
      kPartsOffset + static_cast<int>(sizeof(Parts)) <= Config::kSmemBytes;

  static_assert(kTailOffset <= token_tile_bytes(Config::kRows, kWidth));
  static_assert(kPartsOffset <= Config::kSmemBytes);
  static_assert(kHasParts || sizeof(Parts) <= kKeyBytes);
  static_assert(sizeof(RowSums) <= kStages * kKeyBytes, "they lie where the keys were");
  static_assert(sizeof(OrderScratch<kWarps>) <= kTailOffset);
  static_assert(Config::kRows % 16 == 0 && kWorkTiles <= Config::kRows);
  static_assert(kTileColumns <= kTokenColumns && kColumns % 16 == 0,
                "a chunk is whole tiles and whole steps of 16 columns");
  static_assert(kUnit < 8 ? (kUnit & (kUnit - 1)) == 0 : kUnit % 8 == 0);
};

}  // namespace lacuna
