// Where the queries, keys and values of a work tile come from. Keys and values are rows of
// args.attend.k and v, in order or gathered, or 8-bit rows of the workspace, which are padded to
// whole tiles. The plan names the loader and the kinds of rows as Config::Producer.
#pragma once

#include "attend/mma/shape.cuh"
#include "loader/e4m3_loader.cuh"
#include "loader/gather_loader.cuh"
#include "loader/page_loader.cuh"
#include "loader/row_tile_loader.cuh"
#include "pipeline/kv_element.cuh"
#include "pipeline/sequences.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

// What the rows of keys or of values are; the plan chooses one for each
// (compiler/target/choose_variant.cpp).

/// 16 bits, as the caller's tensors have them.
struct TokenRows {
  template <template <class, int> class RowLoader, class Config, class Tile>
  using Loader = RowLoader<Tile, AttendShape<Config>::kThreads>;
};
/// e4m3, of which 16-bit tiles are made.
struct E4m3Rows {
  template <template <class, int> class RowLoader, class Config, class Tile>
  using Loader =
      E4m3Loader<RowLoader, typename Config::Element, Tile, AttendShape<Config>::kThreads>;
};
/// 8 bits, which a kernel has written into the workspace, one row behind the other.
struct QuantisedRows {
  template <template <class, int> class RowLoader, class Config, class Tile>
  using Loader = RowTileLoader<Tile, AttendShape<Config>::kThreads>;
};

/// `RowLoader`: RowTileLoader, GatherLoader, PageLoader or PageGatherLoader, as the caller's keys
/// and values lie. `Keys` and `Values`: what their rows are.
template <class Config, template <class Tile, int kThreads> class RowLoader, class Keys,
          class Values>
struct AttendOperands {
  using Shape = AttendShape<Config>;
  using Element = typename Config::Element;
  static constexpr bool kHasPages = attends_to_pages<Config>();
  using QueryLoader = RowTileLoader<typename Shape::QueryTile, Shape::kThreads>;
  using KeyLoader = typename Keys::template Loader<RowLoader, Config, typename Shape::KeyTile>;
  using ValueLoader =
      typename Values::template Loader<RowLoader, Config, typename Shape::ValueTile>;

  template <class Args>
  __device__ __forceinline__ static QueryLoader queries(const Args& args, const WorkTile& row) {
    if constexpr (Shape::kHasInt8Keys) {
      const int padded = args.predict.q_padded;
      const long long head = static_cast<long long>(row.b) * row.n_h + row.h;
      return QueryLoader(args.predict.q_values + head * padded * Config::kHeadDim, Config::kHeadDim,
                         padded);
    } else {
      const TensorArg& q = args.attend.q;
      return QueryLoader(head_of(q, row.b, row.h), q.stride_n, args.attend.n_q);
    }
  }

  template <class Args>
  __device__ __forceinline__ static KeyLoader keys(const Args& args, const WorkTile& row,
                                                   const GatheredKeys& gathered) {
    if constexpr (Shape::kHasInt8Keys) {
      const int padded = args.predict.k_padded;
      return KeyLoader(args.predict.k_values + head_kv(args, row) * padded * Config::kHeadDim,
                       Config::kHeadDim, padded);
    } else if constexpr (Shape::kHasE4m3Rows) {
      const auto& from = args.kv_scales;
      return KeyLoader(
          rows_of<typename KeyLoader::Rows>(args.attend.k, args, row, gathered),
          scales_of(from.keys, from.keys_stride_b, from.keys_stride_h, args, row, gathered));
    } else {
      return rows_of<KeyLoader>(args.attend.k, args, row, gathered);
    }
  }

  template <class Args>
  __device__ __forceinline__ static ValueLoader values(const Args& args, const WorkTile& row,
                                                       const GatheredKeys& gathered) {
    if constexpr (Shape::kHasE4m3Values) {
      const int padded = args.predict.k_padded;
      return ValueLoader(args.predict.v_values + head_kv(args, row) * Config::kHeadDim * padded,
                         padded, Config::kHeadDim);
    } else if constexpr (Shape::kHasE4m3Rows) {
      const auto& from = args.kv_scales;
      return ValueLoader(
          rows_of<typename ValueLoader::Rows>(args.attend.v, args, row, gathered),
          scales_of(from.values, from.values_stride_b, from.values_stride_h, args, row, gathered));
    } else {
      return rows_of<ValueLoader>(args.attend.v, args, row, gathered);
    }
  }

  /// One scale for each channel of e4m3 values.
  template <class Args>
  __device__ __forceinline__ static const float* value_scales(const Args& args,
                                                              const WorkTile& row) {
    return args.predict.v_scale + head_kv(args, row) * Config::kHeadDim;
  }

 private:
  template <class T = Element>
  __device__ __forceinline__ static const T* head_of(const TensorArg& tensor, int b, int h) {
    return static_cast<const T*>(tensor.data) + b * tensor.stride_b + h * tensor.stride_h;
  }

  /// Of the rows of keys or values of e4m3.
  template <class Args>
  __device__ __forceinline__ static RowScales scales_of(const float* scales, long long stride_b,
                                                        long long stride_h, const Args& args,
                                                        const WorkTile& row,
                                                        const GatheredKeys& gathered) {
    RowScales of_rows = {};
    if (scales == nullptr) return of_rows;
    of_rows.rows = Config::kGathers ? gathered.count : args.attend.n_k;
    if constexpr (Config::kGathers) of_rows.gathered = gathered.keys;
    of_rows.scales = scales + row.h / args.attend.heads_per_kv * stride_h;
    if constexpr (kHasPages) {
      of_rows.pages = args.sequences.pages;
      of_rows.page_stride = stride_b;
      of_rows.page_shift = 31 - __clz(args.sequences.page_tokens);
    } else {
      of_rows.scales += row.b * stride_b;
    }
    return of_rows;
  }

  /// Number of the row's KV head in arrays [n_b, n_h_kv].
  template <class Args>
  __device__ __forceinline__ static long long head_kv(const Args& args, const WorkTile& row) {
    const int n_h_kv = row.n_h / args.attend.heads_per_kv;
    return static_cast<long long>(row.b) * n_h_kv + row.h / args.attend.heads_per_kv;
  }

  template <class Loader, class Args>
  __device__ __forceinline__ static Loader rows_of(const TensorArg& tensor, const Args& args,
                                                   const WorkTile& row,
                                                   const GatheredKeys& gathered) {
    const auto* head =
        head_of<KvElement<Config>>(tensor, kHasPages ? 0 : row.b, row.h / args.attend.heads_per_kv);
    if constexpr (Config::kGathers && kHasPages) {
      return Loader(head, paged_rows(tensor, args.sequences), gathered.keys, gathered.count);
    } else if constexpr (Config::kGathers) {
      return Loader(head, tensor.stride_n, gathered.keys, gathered.count);
    } else if constexpr (kHasPages) {
      return Loader(head, paged_rows(tensor, args.sequences), args.attend.n_k);
    } else {
      return Loader(head, tensor.stride_n, args.attend.n_k);
    }
  }
};

}  // namespace lacuna
