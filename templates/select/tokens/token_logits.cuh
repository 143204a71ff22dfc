// Where the logits of predict_tokens and predict_cells come from: which chunks of keys there are to
// load, the loads (of tokens), the products, their scale and the mask. One type for the estimate
// itself (16 bits or integers) and one for the exact logits of `reference`.
#pragma once

#include "base/mask_pair.cuh"
#include "loader/page_loader.cuh"
#include "loader/row_tile_loader.cuh"
#include "loader/token_rows.cuh"
#include "quantise/groups.cuh"
#include "select/dims.cuh"
#include "select/tokens/token_product.cuh"
#include "select/tokens/token_shape.cuh"

namespace lacuna {

/// Shape: TokenShape or CellShape.
template <class Shape, class Config, class Hooks, class Args, int kBits, bool kIsReference>
class TokenLogits {
  using Element = typename Config::Element;
  using QueryTile = typename Shape::template QueryTile<kBits>;
  using KeyTile = typename Shape::template KeyTile<kBits>;
  using QueryLoader = RowTileLoader<QueryTile, Config::kThreads>;
  /// Integers lie in the workspace, one behind the other.
  static constexpr bool kHasPages = kBits == 16 && attends_to_pages<Config>();
  using KeyLoader = RowTileLoader<KeyTile, Config::kThreads>;
  using QueryGroups =
      QuantGroups<Config::kGroup, true, (Config::kTileQ > 16 ? Config::kTileQ : 16)>;
  using KeyGroups = QuantGroups<Config::kGroup, false, (Config::kTileK > 32 ? Config::kTileK : 32)>;
  static constexpr int kCell = Shape::kCell, kCellK = Shape::kCellK;
  static constexpr int kStride = Shape::kRowStride;  ///< tokens from row to row
  static_assert(!kIsReference || kBits == 16, "reference logits are exact");
  static_assert(kStride == 1 || kBits == 16, "integers have a scale for each token's group");

 public:
  template <bool kIsFloat, int kBlocks>
  struct SumsOf {
    using Type = float[kBlocks][4];
  };
  template <int kBlocks>
  struct SumsOf<false, kBlocks> {
    using Type = int[kBlocks][4];
  };
  using Sums = typename SumsOf<kBits == 16, Shape::kBlocks>::Type;

  __device__ __forceinline__ TokenLogits(const Args& args, const KeepRow& row)
      : args_(args), row_(row), first_row_(row.q0 / (kCell * kStride)) {
    if constexpr (Shape::kIsLast) first_row_ = row.q0;
  }

  __device__ __forceinline__ int first_row() const { return first_row_; }

  /// The first chunk from column `first` on with anything to add up; past the end if none. Each
  /// lane of a warp, which must be whole, asks about another.
  __device__ __forceinline__ int first_possible(int first) const {
    const int columns = ceil_div(args_.attend.n_k, kCellK);
    for (; first < columns; first += 32 * Shape::kColumns) {
      const int mine = first + lane_index() * Shape::kColumns;
      const u32 possible = __ballot_sync(kAllLanes, mine < columns && is_possible(mine));
      if (possible != 0) return first + (__ffs(static_cast<int>(possible)) - 1) * Shape::kColumns;
    }
    return columns;
  }

  /// Is there anything to add up in this chunk?
  __device__ __forceinline__ bool is_possible(int first) const {
    const int k0 = first * kCellK, k1 = last_token(first);
    if (!sees_keys<Config, Hooks>(args_, row_, k0, k1)) return false;
    if constexpr (Config::kStep == Step::kWithin && Shape::kRowsAreOneTile && !kIsReference) {
      bool any = false;
      for (int j = k0 / Config::kTileK; j <= k1 / Config::kTileK; ++j)
        any = any || was_kept(args_, row_, j);
      return any;
    }
    if constexpr (!kIsReference) return true;
    return Hooks::reference_possible(args_, row_.q0, row_.q1, k0, k1);
  }

  /// Are there columns that some row may not add up?
  __device__ __forceinline__ bool is_partial(int first) const {
    const int k0 = first * kCellK, k1 = last_token(first);
    if (k1 - k0 + 1 < Shape::kColumns * kCellK) return true;
    bool full = true;
    if constexpr (Config::kHasMask) {
      full = Hooks::tile_full(args_, row_.q0, row_.q1, k0, k1, row_.h, row_.b);
    }
    if constexpr (kIsReference) {
      full = full && Hooks::reference_full(args_, row_.q0, row_.q1, k0, k1);
    }
    return !full;
  }

  __device__ __forceinline__ void load_queries(u32 tile) const {
    const int rows = Shape::rows_of(args_.attend.n_q);
    if constexpr (kBits == 16) {
      const TensorArg& q = args_.attend.q;
      const Element* const head = element_of<Element>(q, row_.b, row_.h, Shape::token_of(0), 0);
      QueryLoader(head, q.stride_n * kStride, rows).load(tile, first_row_);
    } else {
      const signed char* const head =
          args_.predict.estimate_q_values +
          query_head(args_, row_.b, row_.h) * args_.predict.q_padded * Config::kHeadDim;
      QueryLoader(head, Config::kHeadDim, rows).load(tile, first_row_);
    }
  }

  __device__ __forceinline__ void load_keys(u32 tile, int first) const {
    const int columns = args_.attend.n_k;
    if constexpr (kBits == 16) {
      const TensorArg& k = args_.attend.k;
      const Element* const head =
          element_of<Element>(k, row_.b, row_.h / args_.attend.heads_per_kv, 0, 0);
      if constexpr (kHasPages) {
        using Loader = PageLoader<KeyTile, Config::kThreads>;
        Loader(head, paged_rows(k, args_.sequences), columns).load(tile, first);
      } else {
        KeyLoader(head, k.stride_n, columns).load(tile, first);
      }
    } else {
      const signed char* const head =
          args_.predict.estimate_k_values +
          key_head(args_, row_.b, row_.h) * args_.predict.k_padded * Config::kHeadDim;
      KeyLoader(head, Config::kHeadDim, columns).load(tile, first);
    }
  }

  /// The products of a set of 16 rows with a split of the chunk's columns.
  __device__ __forceinline__ void add(Sums& sums, u32 queries, u32 keys, int set, int split) const {
    add_products<Element, QueryTile, KeyTile>(
        sums, queries + static_cast<u32>(set * 16 * QueryTile::kRowBytes),
        keys + static_cast<u32>(split * Shape::kSplitColumns * KeyTile::kRowBytes),
        kIsReference ? ~0u : compared_dims<Config>());
  }

  /// Products -> logits in natural units; `column` is the split's first.
  __device__ __forceinline__ void scale(float (&scores)[Shape::kBlocks][4], const Sums& sums,
                                        int set, int column) const {
    if constexpr (kBits == 16) {
      const float unit = args_.attend.scale * Config::kTemperature / Shape::kProducts;
#pragma unroll
      for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[n][i] = sums[n][i] * unit;
      }
    } else {
      scale_integers(scores, sums, set, column);
    }
  }

  /// -inf where the mask, `reference` or `exclude` (if not null: flags by tile of the chunk, in
  /// which the split begins at `offset`) leaves a pair out.
  __device__ __forceinline__ void hide(float (&scores)[Shape::kBlocks][4], int set, int column,
                                       const int* excluded, int offset) const {
    const int columns = ceil_div(args_.attend.n_k, kCellK);
    const int row = first_row_ + set * 16 + lane_index() / 4;
    const int lane_column = lane_index() % 4 * 2;
    const auto mask_parts = prepare_mask<Hooks>(args_, row_.h, row_.b);
    const auto counts = [&](int place) {
      bool counts = column + place < columns;
      if (excluded != nullptr)
        counts = counts && excluded[(offset + place) / Shape::kTileColumns] == 0;
      return counts;
    };
    if constexpr (kAsksPairsOfCells) {
      // What the mask needs is prepared for each cell again: registers are short.
      hide_by_bits(scores, [&](int n, int i) {
        const int place = n * 8 + lane_column + i % 2;
        return counts(place) && is_visible(prepare_mask<Hooks>(args_, row_.h, row_.b),
                                           row + i / 2 * 8, column + place);
      });
      return;
    }
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = n * 8 + lane_column + i % 2;
        bool visible = counts(place);
        visible = visible && is_visible(mask_parts, row + i / 2 * 8, column + place);
        if (!visible) scores[n][i] = -kInfinity;
      }
    }
  }

 private:
  static constexpr bool kAreTokens = kCell == 1 && kCellK == 1;
  static constexpr bool kAsksPairsOfCells = asks_cells<Config>() && !kAreTokens;

  /// The code that asks about the pairs of a cell is long, so it stands in a loop, which notes
  /// bits.
  template <class IsSeen>
  __device__ __forceinline__ static void hide_by_bits(float (&scores)[Shape::kBlocks][4],
                                                      const IsSeen& is_seen) {
    constexpr int kBlocksOfWord = smaller(8, Shape::kBlocks);
    static_assert(Shape::kBlocks % kBlocksOfWord == 0);
#pragma unroll
    for (int first = 0; first < Shape::kBlocks; first += kBlocksOfWord) {
      u32 seen = 0;
#pragma unroll 1
      for (int bit = 0; bit < kBlocksOfWord * 4; ++bit)
        seen |= static_cast<u32>(is_seen(first + bit / 4, bit % 4)) << bit;
#pragma unroll
      for (int bit = 0; bit < kBlocksOfWord * 4; ++bit) {
        if ((seen >> bit & 1u) == 0) scores[first + bit / 4][bit % 4] = -kInfinity;
      }
    }
  }

  __device__ __forceinline__ int last_token(int first) const {
    return smaller((first + Shape::kColumns) * kCellK, args_.attend.n_k) - 1;
  }

  template <class MaskParts>
  __device__ __forceinline__ bool is_visible(const MaskParts& mask_parts, int row,
                                             int column) const {
    bool visible = true;
    if constexpr (Config::kHasMask && kAreTokens) {
      visible = sees<Hooks>(args_, mask_parts, Shape::token_of(row), column, row_.h, row_.b);
    }
    if constexpr (Config::kHasMask && !kAreTokens) {
      const int q0 = row * kCell, k0 = column * kCellK;
      visible =
          sees_cell<Config, Hooks>(args_, mask_parts, q0, smaller(q0 + kCell, args_.attend.n_q) - 1,
                                   k0, smaller(k0 + kCellK, args_.attend.n_k) - 1, row_.h, row_.b);
    }
    if constexpr (kIsReference)
      visible = visible && Hooks::reference(args_, Shape::token_of(row), column);
    return visible;
  }

  /// scale * (integer * q_scale * k_scale + row_bias + column_bias)
  __device__ __forceinline__ void scale_integers(float (&scores)[Shape::kBlocks][4],
                                                 const Sums& sums, int set, int column) const {
    const PredictArgs& predict = args_.predict;
    const long long head = query_head(args_, row_.b, row_.h);
    const float* const k_scale =
        predict.estimate_k_scale + key_head(args_, row_.b, row_.h) * predict.estimate_k_groups;
    float q_scale[2], row_bias[2] = {0.0f, 0.0f};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int q = smaller(first_row_ + set * 16 + lane_index() / 4 + 8 * r, args_.attend.n_q - 1);
      q_scale[r] = predict.estimate_q_scale[head * predict.estimate_q_groups + QueryGroups::of(q)];
      if constexpr (Config::kHasRowBias)
        row_bias[r] = predict.row_bias[head * predict.q_padded + q];
    }
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
      // The two columns of a lane share a group; blocks past the end stand for the last one.
      const int k = smaller(column + n * 8, (args_.attend.n_k - 1) / 8 * 8) + lane_index() % 4 * 2;
      const float scale = k_scale[KeyGroups::of(k)];
      float2 bias = {0.0f, 0.0f};
      if constexpr (Config::kHasColumnBias) {
        bias = *reinterpret_cast<const float2*>(predict.column_bias + head * predict.k_padded + k);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float dot = fmaf(static_cast<float>(sums[n][i]), q_scale[i / 2] * scale,
                               row_bias[i / 2] + (i % 2 == 0 ? bias.x : bias.y));
        scores[n][i] = dot * (args_.attend.scale * Config::kTemperature);
      }
    }
  }

  const Args& args_;
  const KeepRow& row_;
  int first_row_;  ///< row (cell, token) of the whole sequence that is row 0 here
};

}  // namespace lacuna
