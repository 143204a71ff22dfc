// Loads of the wgmma family for work tiles of sequences (pipeline/sequence_tile.cuh): queries of all
// heads of a KV head in one box, and keys and values of a sequence's own rows, or of its pages.
#pragma once

#include "arch/edit_map.cuh"
#include "attend/wgmma/wgmma_shape.cuh"

namespace lacuna {

/// Keys or values of one KV head of a sequence.
struct SequenceRows {
  const TensorMap* map;        ///< of its rows, or of all pages
  const TensorMap* last_page;  ///< of pages: that of the last one, cut at the end
  const int* pages;
  int head, n_k;
};

/// The maps that the schedule has made for a sequence.
template <class Args>
__device__ __forceinline__ const TensorMap* maps_of_sequence(const Args& args, int b) {
  return args.batch_schedule.maps + b * kSequenceMaps;
}

/// Keys in pages are not cut: what lies behind the last one is never visible.
template <class Config, class Args>
__device__ __forceinline__ SequenceRows keys_of_sequence(const Args& args,
                                                         const SequenceTile& row) {
  const int head = row.h / args.attend.heads_per_kv;
  if constexpr (batch_layout<Config>(0) == BatchLayout::kPages) {
    return {&args.maps.k, &args.maps.k,
            args.sequences.pages + row.b * args.sequences.pages_stride, head, row.n_k};
  } else {
    return {maps_of_sequence(args, row.b) + kSequenceKeys, nullptr, nullptr, head, row.n_k};
  }
}
template <class Config, class Args>
__device__ __forceinline__ SequenceRows values_of_sequence(const Args& args,
                                                           const SequenceTile& row) {
  SequenceRows values = keys_of_sequence<Config>(args, row);
  const TensorMap* own = maps_of_sequence(args, row.b) + kSequenceValues;
  if constexpr (batch_layout<Config>(0) == BatchLayout::kPages) {
    values.map = &args.maps.v;
    values.last_page = own;
  } else {
    values.map = own;
  }
  return values;
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

/// Brings the tiles of a step, all of them; by a whole warp. A tile that is missing is filled with
/// zeros. Of pages each lane brings one that a tile has, or the tile's part of one.
template <class Slot, class Config, class Args, class Message>
__device__ __forceinline__ void load_sequence_step(const Args& args, const SequenceRows& rows,
                                                   u32 slot, Mbarrier full, const Message& step) {
  constexpr int kStepTiles = WgmmaShape<Config>::kStepTiles;
  if (elect_one()) {
    if (step.tiles[0].exists()) {
      full.arrive_expecting(Slot::kBytes);
    } else {
      full.arrive();
    }
  }
  __syncwarp();
  if (!step.tiles[0].exists()) return;
  const auto policy = l2_policy<L2Policy::kKeepLast>();
  const int lane = lane_index();
  constexpr bool kHasPages = batch_layout<Config>(0) == BatchLayout::kPages;
  const int page_tokens = kHasPages ? args.sequences.page_tokens : Config::kTileK;
  const int box_tokens = smaller(page_tokens, Config::kTileK);
  const int boxes = Config::kTileK / box_tokens;
  if (lane >= kStepTiles * boxes) return;
  const int n = lane / boxes, part = lane - n * boxes;
  TileRef tile = step.tiles[0];
#pragma unroll
  for (int t = 1; t < kStepTiles; ++t) {
    if (n == t) tile = step.tiles[t];
  }
  const int first = tile.exists() ? tile.index() * Config::kTileK : rows.n_k;
  int token = first + part * box_tokens, page = 0;
  const TensorMap* map = rows.map;
  if constexpr (kHasPages) {
    const int place = token / page_tokens;
    if (token + box_tokens > rows.n_k) map = rows.last_page;
    page = tile.exists() && token < rows.n_k ? rows.pages[place] : -1;  // there is none: zeros
    token -= place * page_tokens;
  }
  for (int p = 0; p < Slot::kBoxes; ++p) {
    tma_load(*map, slot + Slot::offset(n, p) + part * box_tokens * kPanelRowBytes, full,
             Slot::origin(token, p, rows.head, page), policy);
  }
}

}  // namespace lacuna
