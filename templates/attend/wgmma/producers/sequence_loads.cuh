// Loads of the wgmma family for work tiles of sequences (pipeline/sequence_tile.cuh): queries of
// all heads of a work tile in one box, and keys and values of a sequence's own rows, or of its
// pages. Operands of 8 bits lie in the sequences' pieces of the workspace, which are the batch
// entries of the launch's own maps.
#pragma once

#include "arch/copy/edit_map.cuh"
#include "attend/wgmma/layout/wgmma_smem.cuh"
#include "base/constant.cuh"

namespace lacuna {

/// Do the keys or values of these slots lie in pages?
template <class Config, class Slot>
constexpr bool lie_in_pages() {
  return attends_to_pages<Config>() && !Slot::kIsPrepared;
}

/// load(page shift), log2 of the tokens of a page as a Constant; without pages that of a tile. The
/// choice is made before a wait, so that between a place that is free and the load that fills it
/// hardly anything is left to work out: each cycle counts there.
template <class Config, class Slot, class Args, class Load>
__device__ __forceinline__ void with_page_shift(const Args& args, Load load) {
  if constexpr (lie_in_pages<Config, Slot>()) {
    const int tokens = args.sequences.page_tokens;
    if (tokens == 16) {
      load(Constant<4>{});
    } else if (tokens == 32) {
      load(Constant<5>{});
    } else if (tokens == 64) {
      load(Constant<6>{});
    } else {
      load(Constant<7>{});
    }
  } else {
    load(Constant<log2_of(Config::kTileK)>{});
  }
}

/// Keys or values of a KV head.
struct SequenceRows {
  const TensorMap* map;        ///< of the sequence's rows, of all pages, or of all pieces
  const TensorMap* last_page;  ///< of pages: that of the last one
  int head;
  int entry;  ///< of the map's batch, where that is not a page
  int n_k;    ///< tokens of the sequence; of operands in the workspace, of the map
};

/// Of operands in the workspace.
template <class Args>
__device__ __forceinline__ SequenceRows prepared_rows(const Args& args, const TensorMap& map, int b,
                                                      int head) {
  return {&map, &map, head, b, args.predict.k_padded};
}

/// Keys in pages are not cut: what lies behind the last one is never visible.
template <class Config, class Args>
__device__ __forceinline__ SequenceRows keys_of_sequence(const Args& args, int b, int head,
                                                         int n_k) {
  if constexpr (Config::KeySlot::kIsPrepared) {
    return prepared_rows(args, args.maps.k, b, head);
  } else if constexpr (attends_to_pages<Config>()) {
    return {&args.maps.k, &args.maps.k, head, 0, n_k};
  } else {
    const TensorMap* own = maps_of_sequence(args, b) + kSequenceKeys;
    return {own, own, head, 0, n_k};
  }
}
template <class Config, class Args>
__device__ __forceinline__ SequenceRows values_of_sequence(const Args& args, int b, int head,
                                                           int n_k) {
  if constexpr (Config::ValueSlot::kIsPrepared) {
    return prepared_rows(args, args.maps.v, b, head);
  } else {
    const TensorMap* own = maps_of_sequence(args, b) + kSequenceValues;
    return {attends_to_pages<Config>() ? &args.maps.v : own, own, head, 0, n_k};
  }
}

/// By a whole warp, before its first load of the sequence: the maps that it uses. The warp that
/// leads brings queries. Consumers store O behind what it tells them, so they need no fence of
/// their own.
template <class Config, class Loads, class Args>
__device__ __forceinline__ void acquire_maps(const Args& args, int b, bool leads) {
  const TensorMap* own = maps_of_sequence(args, b);
  if (leads) {
    if constexpr (has_own_map<Config>(kSequenceQueries)) acquire_map(own[kSequenceQueries]);
    acquire_map(own[kSequenceOutput]);
  }
  if constexpr (Loads::kBringsKeys && has_own_map<Config>(kSequenceKeys))
    acquire_map(own[kSequenceKeys]);
  if constexpr (Loads::kBringsValues && has_own_map<Config>(kSequenceValues))
    acquire_map(own[kSequenceValues]);
}

/// Brings the queries of a work tile to the places of its warpgroups; by one thread.
template <class Config, class Args, class Row>
__device__ __forceinline__ void load_packed_queries(const Args& args, const WgmmaSmem<Config>& smem,
                                                    u32 buffer, Mbarrier full, const Row& row) {
  using Slot = typename WgmmaShape<Config>::QuerySlot;
  const int queries = args.batch_schedule.group_queries;
  const auto policy = l2_policy<L2Policy::kKeepFirst>();
  full.arrive_expecting(Config::kWarpgroups * Slot::kBoxes * queries * tile_heads<Config>(args) *
                        Slot::kRowBytes);
  const TensorMap& map =
      Slot::kIsPrepared ? args.maps.q : maps_of_sequence(args, row.b)[kSequenceQueries];
  const int entry = Slot::kIsPrepared ? row.b : 0;
  for (int w = 0; w < Config::kWarpgroups; ++w) {
    for (int p = 0; p < Slot::kBoxes; ++p) {
      tma_load(map, smem.queries(buffer, w) + Slot::offset(0, p), full,
               Slot::origin(row.q0 + w * queries, p, row.h, entry), policy);
    }
  }
}

/// Boxes of a tile, along its tokens: all of them, or the part of it that lies in one page.
template <class RowSlot, class ShapeConfig, int kPageShift>
struct TileBoxes {
  using Slot = RowSlot;
  using Config = ShapeConfig;
  static constexpr int kShift = smaller(kPageShift, log2_of(Config::kTileK));  ///< log2 of tokens
  static constexpr int kTokens = 1 << kShift;
  static constexpr int kCount = Config::kTileK >> kShift;  ///< of a tile
  static constexpr int kPageTokens = 1 << kPageShift;
};

/// The page of a box that begins at a token; -1: none.
template <class Args, class Row>
__device__ __forceinline__ int page_of_token(const Args& args, const Row& row, const TileRef& tile,
                                             int token, int page_shift) {
  if (!tile.exists() || token >= row.n_k) return -1;
  return args.sequences.pages[row.b * args.sequences.pages_stride + (token >> page_shift)];
}

/// The pages of a step's boxes, counted through its tiles: of few boxes each in a register.
template <class Boxes>
struct FewPages {
  static constexpr int kStepTiles = WgmmaShape<typename Boxes::Config>::kStepTiles;
  static constexpr bool kAreFew = kStepTiles * Boxes::kCount <= 2;
  int pages[kStepTiles * Boxes::kCount];

  template <class Args, class Row, class Message>
  __device__ __forceinline__ FewPages(const Args& args, const Row& row, const Message& step) {
#pragma unroll
    for (int t = 0; t < kStepTiles; ++t) {
      const int first = step.tiles[t].index() * Boxes::Config::kTileK;
#pragma unroll
      for (int box = 0; box < Boxes::kCount; ++box)
        pages[t * Boxes::kCount + box] = page_of_token(
            args, row, step.tiles[t], first + box * Boxes::kTokens, log2_of(Boxes::kPageTokens));
    }
  }
  __device__ __forceinline__ int operator()(int box) const { return pages[box]; }
};

/// The same of any number up to 32, each in a lane of its own.
struct PagesOfLanes {
  int page;  ///< of this lane's box

  __device__ __forceinline__ int operator()(int box) const {
    return __shfl_sync(kAllLanes, page, box);
  }
};

/// The page of a lane's box of a step, counted through its tiles; by a whole warp.
template <class Config, class Slot, class Args, class Row, class Message>
__device__ __forceinline__ int page_of_lane(const Args& args, const Row& row, const Message& step,
                                            int page_shift) {
  if constexpr (!lie_in_pages<Config, Slot>()) return 0;
  constexpr int kStepTiles = WgmmaShape<Config>::kStepTiles;
  const int box_shift = smaller(page_shift, log2_of(Config::kTileK));
  const int n = lane_index() >> (log2_of(Config::kTileK) - box_shift);
  if (n >= kStepTiles) return -1;
  TileRef tile = step.tiles[0];
#pragma unroll
  for (int t = 1; t < kStepTiles; ++t) {
    if (n == t) tile = step.tiles[t];
  }
  const int token = (tile.index() - n) * Config::kTileK + (lane_index() << box_shift);
  return page_of_token(args, row, tile, token, page_shift);
}

/// What a warp asks for before it waits for a place: it has issued the loads of its step before, so
/// the table has the time of a product to answer.
template <class Boxes, class Args, class Row, class Message>
__device__ __forceinline__ auto pages_of_step(const Args& args, const Row& row,
                                              const Message& step) {
  using Config = typename Boxes::Config;
  using Slot = typename Boxes::Slot;
  if constexpr (lie_in_pages<Config, Slot>() && FewPages<Boxes>::kAreFew) {
    return FewPages<Boxes>(args, row, step);
  } else {
    return PagesOfLanes{page_of_lane<Config, Slot>(args, row, step, log2_of(Boxes::kPageTokens))};
  }
}

/// Brings the `wanted` tiles of a step, a bit each; by a whole warp. `page_of`: FewPages or
/// PagesOfLanes. For a tile or page that is missing, a box behind the last token is loaded, which
/// the copy engine fills with zeros. Of a step without tiles nothing is loaded.
template <class Boxes, class Message, class PageOf>
__device__ __forceinline__ void load_sequence_step(const SequenceRows& rows, const Message& step,
                                                   const PageOf& page_of, u32 slot, Mbarrier full,
                                                   u32 wanted = ~0u) {
  using Config = typename Boxes::Config;
  using Slot = typename Boxes::Slot;
  constexpr bool kHasPages = lie_in_pages<Config, Slot>();
  if (!step.tiles[0].exists()) return;
  const auto policy = l2_policy<L2Policy::kKeepLast>();
  const bool is_elected = elect_one();
#pragma unroll
  for (int t = 0; t < WgmmaShape<Config>::kStepTiles; ++t) {
    if ((wanted >> t & 1) == 0) continue;
    const TileRef tile = step.tiles[t];
    const int first = tile.exists() ? tile.index() * Config::kTileK : rows.n_k;
#pragma unroll
    for (int box = 0; box < Boxes::kCount; ++box) {
      int token = first + box * Boxes::kTokens, page = rows.entry;
      const TensorMap* map = rows.map;
      if constexpr (kHasPages) {
        page = page_of(t * Boxes::kCount + box);
        if (token + Boxes::kTokens > rows.n_k) map = rows.last_page;
        token &= Boxes::kPageTokens - 1;
      }
      if (!is_elected) continue;
#pragma unroll
      for (int panel = 0; panel < Slot::kBoxes; ++panel) {
        const u32 at = box * Boxes::kTokens * Slot::kRowBytes;
        tma_load(*map, slot + Slot::offset(t, panel) + at, full,
                 Slot::origin(token, panel, rows.head, page), policy);
      }
    }
  }
}

}  // namespace lacuna
