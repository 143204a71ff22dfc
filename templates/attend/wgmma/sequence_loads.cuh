// Loads of the wgmma family for work tiles of sequences (pipeline/sequence_tile.cuh): queries of all
// heads of a KV head in one box, and keys and values of a sequence's own rows, or of its pages.
#pragma once

#include "arch/edit_map.cuh"
#include "attend/wgmma/wgmma_shape.cuh"

namespace lacuna {

/// The maps that the schedule has made for a sequence.
template <class Args>
__device__ __forceinline__ const TensorMap* maps_of_sequence(const Args& args, int b) {
  return args.batch_schedule.maps + b * kSequenceMaps;
}

/// Boxes that a tile of a step comes in: one, or one for each page that it lies in.
template <class Config, class Args>
__device__ __forceinline__ int box_tokens_of(const Args& args) {
  if constexpr (batch_layout<Config>(0) == BatchLayout::kPages)
    return smaller(args.sequences.page_tokens, Config::kTileK);
  return Config::kTileK;
}

/// The page of a lane's box of a step, counted through its tiles; by a whole warp. -1: none. It is
/// looked up before the place in shared memory is free.
template <class Config, class Args, class Message>
__device__ __forceinline__ int page_of_lane(const Args& args, const SequenceTile& row,
                                            const Message& step) {
  if constexpr (batch_layout<Config>(0) != BatchLayout::kPages) return 0;
  constexpr int kStepTiles = WgmmaShape<Config>::kStepTiles;
  const int box_tokens = box_tokens_of<Config>(args), boxes = Config::kTileK / box_tokens;
  const int n = lane_index() / boxes;
  if (n >= kStepTiles) return -1;
  TileRef tile = step.tiles[0];
#pragma unroll
  for (int t = 1; t < kStepTiles; ++t) {
    if (n == t) tile = step.tiles[t];
  }
  const int token = tile.index() * Config::kTileK + (lane_index() - n * boxes) * box_tokens;
  if (!tile.exists() || token >= row.n_k) return -1;
  return args.sequences
      .pages[row.b * args.sequences.pages_stride + token / args.sequences.page_tokens];
}

/// Keys or values of a KV head.
struct SequenceRows {
  const TensorMap* map;        ///< of the sequence's rows, or of all pages
  const TensorMap* last_page;  ///< of pages: that of the last one
  int head;
};

/// Keys in pages are not cut: what lies behind the last one is never visible.
template <class Config, class Args>
__device__ __forceinline__ SequenceRows keys_of_sequence(const Args& args, int b, int head) {
  if constexpr (batch_layout<Config>(0) == BatchLayout::kPages) {
    return {&args.maps.k, &args.maps.k, head};
  } else {
    const TensorMap* own = maps_of_sequence(args, b) + kSequenceKeys;
    return {own, own, head};
  }
}
template <class Config, class Args>
__device__ __forceinline__ SequenceRows values_of_sequence(const Args& args, int b, int head) {
  const TensorMap* own = maps_of_sequence(args, b) + kSequenceValues;
  if constexpr (batch_layout<Config>(0) == BatchLayout::kPages) {
    return {&args.maps.v, own, head};
  } else {
    return {own, own, head};
  }
}

/// By a whole warp, before its first load of the sequence.
template <class Config, class Args>
__device__ __forceinline__ void acquire_maps(const Args& args, int b) {
  const TensorMap* own = maps_of_sequence(args, b);
  acquire_map(own[kSequenceQueries]);
  if constexpr (batch_layout<Config>(0) == BatchLayout::kSequences)
    acquire_map(own[kSequenceKeys]);
  acquire_map(own[kSequenceValues]);
}

/// Brings the queries of a work tile to the places of its warpgroups; by one thread.
template <class Config, class Args>
__device__ __forceinline__ void load_packed_queries(const Args& args,
                                                    const WgmmaSmem<Config>& smem, u32 buffer,
                                                    Mbarrier full, const SequenceTile& row) {
  using Slot = typename WgmmaShape<Config>::QuerySlot;
  const int queries = args.batch_schedule.group_queries;
  const auto policy = l2_policy<L2Policy::kKeepFirst>();
  full.arrive_expecting(Config::kWarpgroups * Slot::kBoxes * queries * args.attend.heads_per_kv *
                        kPanelRowBytes);
  const TensorMap& map = maps_of_sequence(args, row.b)[kSequenceQueries];
  for (int w = 0; w < Config::kWarpgroups; ++w) {
    for (int p = 0; p < Slot::kBoxes; ++p) {
      tma_load(map, smem.queries(buffer, w) + Slot::offset(0, p), full,
               Slot::origin(row.q0 + w * queries, p, row.h, 0), policy);
    }
  }
}

/// Where the boxes of a tile go and come from.
struct TileLoad {
  u32 target;  ///< in shared memory
  Mbarrier full;
  int token;  ///< first one of the tile
  unsigned long long policy;
};

/// A tile of a sequence in rows, or of a part of a page: one box; by one thread. `page`: -1 for a tile
/// that is missing.
template <class Slot>
__device__ __forceinline__ void load_whole_tile(const SequenceRows& rows, const TileLoad& load,
                                                int page, bool is_last_page) {
  const TensorMap& map = is_last_page ? *rows.last_page : *rows.map;
#pragma unroll
  for (int p = 0; p < Slot::kBoxes; ++p)
    tma_load(map, load.target + Slot::offset(0, p), load.full,
             Slot::origin(load.token, p, rows.head, page), load.policy);
}

/// Two pages of a tile that has several, from its `box`-th on, which lanes from `first` on have looked
/// up; by a whole warp, of which one thread issues: the copy engine takes what it is told from
/// registers of the warp.
template <class Slot>
__device__ __forceinline__ void load_two_pages(const SequenceRows& rows, const TileLoad& load,
                                               int page_of_lane, int first, int box,
                                               int page_tokens, int n_k) {
  const int page[2] = {__shfl_sync(kAllLanes, page_of_lane, first + box),
                       __shfl_sync(kAllLanes, page_of_lane, first + box + 1)};
  if (!elect_one()) return;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const int token = (box + n) * page_tokens;
    const bool is_last_page = load.token + token + page_tokens > n_k;
    const TensorMap& map = is_last_page ? *rows.last_page : *rows.map;
#pragma unroll
    for (int p = 0; p < Slot::kBoxes; ++p)
      tma_load(map, load.target + Slot::offset(0, p) + token * kPanelRowBytes, load.full,
               Slot::origin(0, p, rows.head, page[n]), load.policy);
  }
}

/// Brings the tiles of a step, all of them; by a whole warp. A tile that is missing, or a page, is a
/// box from behind the last token: zeros. A step without a tile is only announced.
template <class Slot, class Config, class Args, class Message>
__device__ __forceinline__ void load_sequence_step(const Args& args, const SequenceRows& rows,
                                                   const Message& step, int page_of_lane, int n_k,
                                                   u32 slot, Mbarrier full) {
  constexpr bool kHasPages = batch_layout<Config>(0) == BatchLayout::kPages;
  constexpr int kTokens = Config::kTileK;
  if (elect_one()) {
    if (step.tiles[0].exists()) {
      full.arrive_expecting(Slot::kBytes);
    } else {
      full.arrive();
    }
  }
  if (!step.tiles[0].exists()) return;
#pragma unroll
  for (int t = 0; t < WgmmaShape<Config>::kStepTiles; ++t) {
    const TileRef tile = step.tiles[t];
    TileLoad load{slot + Slot::offset(t, 0), full, tile.exists() ? tile.index() * kTokens : n_k,
                  l2_policy<L2Policy::kKeepLast>()};
    const int boxes = kTokens / box_tokens_of<Config>(args);
    if (!kHasPages) {
      if (elect_one()) load_whole_tile<Slot>(rows, load, 0, false);
    } else if (boxes > 1) {
      // Two at a time: a producer has few registers.
      for (int box = 0; box < boxes; box += 2)
        load_two_pages<Slot>(rows, load, page_of_lane, t * boxes, box, kTokens / boxes, n_k);
    } else {
      const int page = __shfl_sync(kAllLanes, page_of_lane, t);
      const int end = (load.token / args.sequences.page_tokens + 1) * args.sequences.page_tokens;
      load.token %= args.sequences.page_tokens;
      if (elect_one()) load_whole_tile<Slot>(rows, load, page, end > n_k);
    }
  }
}

}  // namespace lacuna
