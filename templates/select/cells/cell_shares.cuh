// Scores of the few rows of an estimate over cells: of one query, say. A block of predict_cells
// takes all keys of its rows, so that of few queries there would be one block for each head, each
// with a matrix of mostly empty rows. Where a head has few rows and keys are many, blocks share the
// keys, and leave what predict_cells goes on from: of each row and key tile the log-sum of its
// logits and what they are reduced to (cell_rows.cuh).
//
// A warp multiplies a few tiles with the rows of all heads of their KV head, as one matrix where
// they find room in it and the mask hides none of the keys, else one head after the other; operands
// come straight from memory to registers, those of the second head on from the L1.
// Of 16 elements a lane has four neighbours, of queries and of keys alike, in the place of the two
// pairs that the instruction names: a sum of products does not ask for an order. Tokens of a cell
// that no query is compared with are not read: of antidiagonals of one query, all but one.
#pragma once

#include "select/cells/cell_loader.cuh"
#include "select/cells/cell_reduce.cuh"
#include "select/cells/cell_rows.cuh"
#include "select/dims.cuh"
#include "select/tokens/token_logits.cuh"
#include "tile/warp_product.cuh"

namespace lacuna {

/// Where the cells of a head lie, or one token of each; null where there is none.
template <class Config, class Args>
class CellRows {
  using Shape = CellShape<Config>;
  using Element = typename Config::Element;
  using Loader = CellLoader<Config, Args>;

 public:
  __device__ __forceinline__ CellRows(const Args& args, const KeepRow& row)
      : args_(args),
        queries_(Loader::first_query(args, row)),
        keys_(Loader::first_key(args, row)) {}

  /// Is this token of keys compared with any query?
  __device__ __forceinline__ bool has_queries(int token) const {
    return Config::kCellsAreMeans || Shape::kCell - 1 - token < args_.attend.n_q;
  }
  __device__ __forceinline__ const Element* query(int cell, int token) const {
    const int q = cell * Shape::kCell + (Config::kCellsAreMeans ? 0 : Shape::kCell - 1 - token);
    if (q >= args_.attend.n_q) return nullptr;
    if constexpr (Config::kCellsAreMeans) return queries_ + cell * Config::kHeadDim;
    return queries_ + q * args_.attend.q.stride_n;
  }
  __device__ __forceinline__ const Element* key(int cell, int token) const {
    const int k = cell * Shape::kCellK + token;
    if (k >= args_.attend.n_k) return nullptr;
    const TensorArg& keys = args_.attend.k;
    if constexpr (Config::kCellsAreMeans) {
      return keys_ + static_cast<long long>(cell) * Config::kHeadDim;
    } else if constexpr (attends_to_pages<Config>()) {
      const PagedRows paged = paged_rows(keys, args_.sequences);
      const int page = paged.pages[k >> paged.page_shift];
      return keys_ + page * paged.page_stride +
             (k & ((1 << paged.page_shift) - 1)) * paged.row_stride;
    } else {
      return keys_ + k * keys.stride_n;
    }
  }

 private:
  const Args& args_;
  const Element* const queries_;
  const Element* const keys_;
};

/// A warp has 16 rows and the columns of a unit.
template <class Config>
struct CellUnitShape : CellShape<Config> {
  static constexpr int kColumns = cell_unit_columns(CellShape<Config>::kTileColumns);
  static constexpr int kSplitColumns = kColumns, kBlocks = kColumns / 8;
};

template <class Config, class Hooks, class Args>
class CellShare {
  using Shape = CellUnitShape<Config>;
  using Element = typename Config::Element;
  using Logits = TokenLogits<Shape, Config, Hooks, Args, 16, false>;
  using Few = FewCellRows<Config>;
  using Rows = CellRows<Config, Args>;
  using Sums = float[Shape::kBlocks][4];
  static constexpr int kSteps = Config::kHeadDim / 16;
  static constexpr int kShareColumns = cell_share_columns(Shape::kTileColumns);

 public:
  /// Columns from `first` on; `h`: the first head of the KV head.
  __device__ __forceinline__ CellShare(const Args& args, int b, int h, int first)
      : args_(args), b_(b), h_(h), first_(first), rows_(ceil_div(args.attend.n_q, Shape::kCell)) {}

  __device__ __forceinline__ void run() const {
    const int columns = ceil_div(args_.attend.n_k, Shape::kCellK);
#pragma unroll 1
    for (int own = warp_index() * Shape::kColumns; own < kShareColumns;
         own += Shape::kWarps * Shape::kColumns) {
      const int column = first_ + own;
      if (column >= columns) break;
      const int heads = args_.attend.heads_per_kv, step = sees_all(column) ? heads : 1;
#pragma unroll 1
      for (int h = 0; h < heads; h += step) take_unit(h_ + h, step, column);
    }
  }

 private:
  /// All rows of a head.
  __device__ __forceinline__ KeepRow row_of(int h) const {
    return {0, h, b_, 0, args_.attend.n_q - 1};
  }

  /// Do the rows of all heads find room in one matrix, and does none hide anything of the unit?
  __device__ __forceinline__ bool sees_all(int column) const {
    const int heads = args_.attend.heads_per_kv;
    if (heads * rows_ > kFewCellRows) return false;
    const KeepRow row = row_of(h_ + smaller(lane_index(), heads - 1));
    const Logits logits(args_, row);
    return __all_sync(kAllLanes, logits.is_possible(column) && !logits.is_partial(column)) != 0;
  }

  /// With the rows of some heads, one behind the other: a matrix. Of several all see all.
  __device__ __forceinline__ void take_unit(int h, int heads, int column) const {
    const KeepRow row = row_of(h);
    const Logits logits(args_, row);
    Sums sums;
    clear(sums);
    float scores[Shape::kBlocks][4];
    const bool sees = heads > 1 || logits.is_possible(column);
    if (sees) multiply(sums, h, heads, column);
    logits.scale(scores, sums, 0, column);
    if (!sees) {
      hide_all(scores);
    } else if (heads == 1 && logits.is_partial(column)) {
      logits.hide(scores, 0, column, nullptr, 0);
    }
    const int tiles = args_.predict.keep_k_tiles;
    const int place = (column + lane_index() % 4 * 2) / Shape::kTileColumns;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = matrix_row(half), own = r / rows_;
      const int left = own < heads ? tiles - place : 0;
      put_tiles<Config>(scores, half, Few::row(args_, b_, h + own, 0, r - own * rows_) + place,
                        left, Few::kLogits * kFewCellRows * tiles);
    }
  }

  /// This lane's, in a half of the 16.
  __device__ __forceinline__ static int matrix_row(int half) { return half * 8 + lane_index() / 4; }

  __device__ __forceinline__ static void hide_all(float (&scores)[Shape::kBlocks][4]) {
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = -kInfinity;
    }
  }

  /// Of this lane's row, a token of it.
  __device__ __forceinline__ const Element* query(int half, int h, int heads, int token) const {
    const int r = matrix_row(half), own = r / rows_;
    if (own >= heads) return nullptr;
    return Rows(args_, row_of(h + own)).query(r - own * rows_, token);
  }

  __device__ __forceinline__ void multiply(Sums& sums, int h, int heads, int column) const {
    const KeepRow row = row_of(h);
    const Rows rows(args_, row);
#pragma unroll 1
    for (int token = 0; token < Shape::kProducts; ++token) {
      if (!rows.has_queries(token)) continue;
      const Element *const low = query(0, h, heads, token), *const high = query(1, h, heads, token);
      const Element* keys[Shape::kBlocks];
#pragma unroll
      for (int n = 0; n < Shape::kBlocks; ++n)
        keys[n] = rows.key(column + n * 8 + lane_index() / 4, token);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if ((compared_dims<Config>() >> step & 1u) == 0) continue;
        const uint2 upper = quad_of(low, step), lower = quad_of(high, step);
        const u32 queries[4] = {upper.x, lower.x, upper.y, lower.y};
#pragma unroll
        for (int n = 0; n < Shape::kBlocks; ++n) {
          const uint2 quad = quad_of(keys[n], step);
          multiply_add<Element>(sums[n], queries, quad.x, quad.y);
        }
      }
    }
  }

  /// Four elements of a row; zeros of none.
  __device__ __forceinline__ static uint2 quad_of(const Element* row, int step) {
    if (row == nullptr) return {0, 0};
    return *reinterpret_cast<const uint2*>(row + step * 16 + lane_index() % 4 * 4);
  }

  const Args& args_;
  const int b_, h_, first_;
  const int rows_;
};

/// A block takes a share of the keys of a KV head.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_cell_shares(const Args& args) {
  using Shape = CellUnitShape<Config>;
  constexpr int kTokens = cell_share_columns(Shape::kTileColumns) * Shape::kCellK;
  if (!has_few_cell_rows<Config>(args)) return;
  const int shares = ceil_div(args.attend.n_k, kTokens);
  const int number = block_index() / shares, share = block_index() - number * shares;
  const int heads = args.attend.n_h / args.attend.heads_per_kv;
  if (number >= args.attend.n_b * heads) return;
  const int b = number / heads, h = (number - b * heads) * args.attend.heads_per_kv;
  CellShare<Config, Hooks, Args>(args, b, h, share * (kTokens / Shape::kCellK)).run();
}

}  // namespace lacuna
