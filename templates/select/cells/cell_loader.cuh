// Rows and columns of an estimate over cells, to shared memory: means that `prepare` has made, or
// tokens as they are.
#pragma once

#include "loader/row_tile_loader.cuh"
#include "loader/token_rows.cuh"
#include "select/cells/cell_shape.cuh"

namespace lacuna {

/// A chunk's products have parts: some elements of the head dimension, of one token of each cell.
/// `group`: the query tiles of a block as one.
template <class Config, class Args>
class CellLoader {
  using Shape = CellShape<Config>;
  using Element = typename Config::Element;
  using QueryTile = typename Shape::template QueryTile<16>;
  using KeyTile = typename Shape::template KeyTile<16>;

 public:
  __device__ __forceinline__ CellLoader(const Args& args, const KeepRow& group)
      : args_(args), group_(group) {}

  /// The means of the block's rows, all elements; of means there are whole blocks of prepare.
  __device__ __forceinline__ void load_queries(u32 target) const {
    const int rows = args_.predict.q_padded / Shape::kCell;
    const auto* const q = reinterpret_cast<const Element*>(args_.predict.q_cells) +
                          query_head(args_, group_.b, group_.h) * rows * Config::kHeadDim;
#pragma unroll
    for (int slice = 0; slice < Shape::kSlices; ++slice) {
      RowTileLoader<QueryTile, Config::kThreads>(q + slice * Shape::kDepth, Config::kHeadDim, rows)
          .load(target + static_cast<u32>(slice * Shape::kQueryBytes), group_.q0 / Shape::kCell);
    }
  }

  /// Some elements of the means of a chunk's keys.
  __device__ __forceinline__ void load_means(int first_column, int part, u32 target) const {
    const int columns = args_.predict.k_padded / Shape::kCellK;
    const auto* const k = reinterpret_cast<const Element*>(args_.predict.k_cells) +
                          key_head(args_, group_.b, group_.h) * columns * Config::kHeadDim;
    RowTileLoader<KeyTile, Config::kThreads>(k + part * Shape::kDepth, Config::kHeadDim, columns)
        .load(target, first_column);
  }

  /// Token kCell - 1 - s of the queries' cells, s of the keys', some elements of each.
  __device__ __forceinline__ void load_tokens(int first_column, int part, u32 target) const {
    const TensorArg &q = args_.attend.q, &k = args_.attend.k;
    const int s = part / Shape::kSlices, element = part % Shape::kSlices * Shape::kDepth;
    const int shift = Shape::kCell - 1 - s;
    RowTileLoader<QueryTile, Config::kThreads>(
        element_of<Element>(q, group_.b, group_.h, shift, element), Shape::kCell * q.stride_n,
        ceil_div(args_.attend.n_q - shift, Shape::kCell))
        .load(target, group_.q0 / Shape::kCell);
    const int h = group_.h / args_.attend.heads_per_kv;
    if constexpr (batch_layout<Config>() == BatchLayout::kPages) {
      PageLoader<KeyTile, Config::kThreads>(element_of<Element>(k, 0, h, 0, element),
                                            paged_rows(k, args_.sequences), args_.attend.n_k,
                                            Shape::kCell, s)
          .load(target + Shape::kKeysOffset, first_column);
    } else {
      RowTileLoader<KeyTile, Config::kThreads>(element_of<Element>(k, group_.b, h, s, element),
                                               Shape::kCell * k.stride_n,
                                               ceil_div(args_.attend.n_k - s, Shape::kCell))
          .load(target + Shape::kKeysOffset, first_column);
    }
  }

 private:
  const Args& args_;
  const KeepRow& group_;
};

}  // namespace lacuna
