// Rows and columns of an estimate over cells, to shared memory: means that `prepare` has made, or
// tokens as they are.
#pragma once

#include "loader/page_loader.cuh"
#include "loader/row_tile_loader.cuh"
#include "loader/token_rows.cuh"
#include "select/cells/cell_shape.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// A chunk's products have parts: some elements of the head dimension, of one token of each cell.
/// `group`: the query tiles of a block as one.
template <class Config, class Args>
class CellLoader {
  using Shape = CellShape<Config>;
  using Element = typename Config::Element;
  using QueryTile = typename Shape::template QueryTile<16>;
  using KeyTile = typename Shape::template KeyTile<16>;
  using QueryLoader = RowTileLoader<QueryTile, Config::kThreads>;
  using KeyLoader = RowTileLoader<KeyTile, Config::kThreads>;
  static constexpr bool kHasPages = attends_to_pages<Config>();

 public:
  __device__ __forceinline__ CellLoader(const Args& args, const KeepRow& group)
      : args_(args),
        group_(group),
        queries_(first_query(args, group), query_stride(args), query_rows(args)),
        keys_(first_key(args, group), key_stride(args), key_rows(args)) {}

  /// The means of the block's rows, all elements; of means there are whole blocks of prepare.
  __device__ __forceinline__ void load_queries(u32 target) const {
#pragma unroll
    for (int slice = 0; slice < Shape::kSlices; ++slice)
      queries_.load_moved(target + static_cast<u32>(slice * Shape::kQueryBytes),
                          group_.q0 / Shape::kCell, slice * Shape::kDepth * kElementBytes,
                          query_rows(args_));
  }

  /// A part of a chunk.
  __device__ __forceinline__ void load(int first_column, int part, u32 target) const {
    if constexpr (Config::kCellsAreMeans) {
      load_means(first_column, part, target);
    } else {
      load_tokens(first_column, part, target);
    }
  }

  // The first row of the head, the elements from row to row, and how many rows there are; of tokens
  // that is token 0 of the cells.

  __device__ __forceinline__ static int query_rows(const Args& args) {
    return Config::kCellsAreMeans
               ? prepared_tokens(args.attend.n_q, args.predict.q_padded) / Shape::kCell
               : ceil_div(args.attend.n_q, Shape::kCell);
  }
  __device__ __forceinline__ static int key_rows(const Args& args) {
    return Config::kCellsAreMeans
               ? prepared_tokens(args.attend.n_k, args.predict.k_padded) / Shape::kCellK
               : ceil_div(args.attend.n_k, Shape::kCell);
  }
  /// Of which there are means. A sequence has fewer than the longest, by which heads lie apart.
  __device__ __forceinline__ static int prepared_tokens(int n, int padded) {
    return has_sequences<Config>() ? prepared_length(n) : padded;
  }
  __device__ __forceinline__ static long long query_stride(const Args& args) {
    return Config::kCellsAreMeans ? Config::kHeadDim : Shape::kCell * args.attend.q.stride_n;
  }
  __device__ __forceinline__ static long long key_stride(const Args& args) {
    return Config::kCellsAreMeans ? Config::kHeadDim : Shape::kCell * args.attend.k.stride_n;
  }
  __device__ __forceinline__ static const Element* first_query(const Args& args,
                                                               const KeepRow& group) {
    if constexpr (Config::kCellsAreMeans)
      return reinterpret_cast<const Element*>(args.predict.q_cells) +
             query_head(args, group.b, group.h) * (args.predict.q_padded / Shape::kCell) *
                 Config::kHeadDim;
    return element_of<const Element>(args.attend.q, group.b, group.h, 0, 0);
  }
  __device__ __forceinline__ static const Element* first_key(const Args& args,
                                                             const KeepRow& group) {
    if constexpr (Config::kCellsAreMeans)
      return reinterpret_cast<const Element*>(args.predict.k_cells) +
             key_head(args, group.b, group.h) * (args.predict.k_padded / Shape::kCellK) *
                 Config::kHeadDim;
    return element_of<const Element>(args.attend.k, kHasPages ? 0 : group.b,
                                     group.h / args.attend.heads_per_kv, 0, 0);
  }

 private:
  /// Some elements of the means of a chunk's keys.
  __device__ __forceinline__ void load_means(int first_column, int part, u32 target) const {
    keys_.load_moved(target, first_column, part * Shape::kDepth * kElementBytes, key_rows(args_));
  }

  /// Token kCell - 1 - s of the queries' cells, s of the keys', some elements of each.
  __device__ __forceinline__ void load_tokens(int first_column, int part, u32 target) const {
    const TensorArg &q = args_.attend.q, &k = args_.attend.k;
    const int s = part / Shape::kSlices, element = part % Shape::kSlices * Shape::kDepth;
    const int shift = Shape::kCell - 1 - s;
    queries_.load_moved(target, group_.q0 / Shape::kCell,
                        (shift * q.stride_n + element) * kElementBytes,
                        ceil_div(args_.attend.n_q - shift, Shape::kCell));
    const u32 keys = target + Shape::kKeysOffset;
    if constexpr (kHasPages) {
      const int h = group_.h / args_.attend.heads_per_kv;
      PageLoader<KeyTile, Config::kThreads>(element_of<Element>(k, 0, h, 0, element),
                                            paged_rows(k, args_.sequences), args_.attend.n_k,
                                            Shape::kCell, s)
          .load(keys, first_column);
    } else {
      keys_.load_moved(keys, first_column, (s * k.stride_n + element) * kElementBytes,
                       ceil_div(args_.attend.n_k - s, Shape::kCell));
    }
  }

  static constexpr long long kElementBytes = sizeof(Element);

  const Args& args_;
  const KeepRow& group_;
  const QueryLoader queries_;
  const KeyLoader keys_;
};

}  // namespace lacuna
