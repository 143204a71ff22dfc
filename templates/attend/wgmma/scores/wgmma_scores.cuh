// What happens to a group of scores of the wgmma family between its product and its softmax: hook
// and mask; and the product a second time.
#pragma once

#include "attend/block_loop.cuh"
#include "attend/key_ranges.cuh"
#include "attend/mask_bits.cuh"
#include "attend/row_ends.cuh"
#include "attend/score_formula.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"
#include "base/mask_pair.cuh"
#include "base/pin.cuh"
#include "pipeline/kept_walk.cuh"
#include "tile/panel_product.cuh"

namespace lacuna {

/// Of a lane's columns in a tile.
__device__ __forceinline__ int first_slot_of_lane() { return lane_index() % 4 * 2; }

/// The score formula on the t-th tile of a group.
template <class Config, class Hooks, class Args, class Lane, int kBlocks>
__device__ __forceinline__ void apply_score_hook(const Args& args, const WorkTile& row,
                                                 const Lane& lane, float (&scores)[kBlocks][4],
                                                 TileRef tile, int t, const TileKeys<Config>& keys,
                                                 const ScoreUnit& unit) {
  constexpr int kTileBlocks = Config::kTileK / 8;
  const int slot = first_slot_of_lane();
  if constexpr (!Config::kGathers) {
    apply_score_formula<Hooks, kTileBlocks>(args, scores + t * kTileBlocks, lane,
                                            keys.at(tile, slot), row.b, unit);
  } else {
    const auto apply = [&](float(*blocks)[4], int n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = blocks[0][i];
        score = Hooks::score(args, score * args.attend.scale, lane.q(i / 2),
                             keys.at(tile, slot + n * 8 + i % 2), lane.h(i / 2), row.b);
        score = fmaf(score, unit.factor, -unit.less[i / 2]);
      }
    };
    auto* const of_tile = scores + t * kTileBlocks;
    if constexpr (formula_is_costly<typename Hooks::ScoreRow>()) {
      for_each_group<kTileBlocks, 1>(of_tile, apply);
    } else {
#pragma unroll
      for (int n = 0; n < kTileBlocks; ++n) apply(of_tile + n, n);
    }
  }
}

/// Which of a lane's scores in a block of 8 keys are visible, a bit each, under a mask that takes
/// many instructions: one row after the other, of which nothing stays in registers. A loop over the
/// two rows would be compiled in a fifth less time, but takes more registers.
template <class Config, class Hooks, class Args, class Lane, class MaskParts>
__device__ __forceinline__ u32 visible_in_block(const Args& args, const WorkTile& row,
                                                const Lane& lane, const MaskParts& mask_parts,
                                                const TileKeys<Config>& keys, TileRef tile,
                                                int slot) {
  u32 bits = 0;
  const auto ask = [&](int r) {
    int key[2] = {keys.at(tile, slot), keys.at(tile, slot + 1)};
    pin(key[0]);  // what follows from the keys, too
    pin(key[1]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool visible = key[i] < args.attend.n_k &&
                           sees<Hooks>(args, mask_parts.of(r), lane.q(r), key[i], lane.h(r), row.b);
      bits |= static_cast<u32>(visible) << (2 * r + i);
    }
  };
  ask(0);
  ask(1);
  return bits;
}

/// Which of a lane's scores in kBlocks blocks from `slot` of a tile on are visible, a bit each. A
/// loop: few tiles need the mask, and an expression in 64 copies takes its time to compile.
template <class Config, class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ u32 visible_scores(const Args& args, const WorkTile& row, Lane lane,
                                              const TileKeys<Config>& keys, TileRef tile,
                                              int slot) {
  const auto mask_parts = prepare_lane_mask<Hooks>(args, lane, row.b);
  u32 bits = 0;
#pragma unroll 1
  for (int n = 0; n < kBlocks; ++n, slot += 8) {
    lane.pin();  // what follows from the query is worked out again: registers are short
    if constexpr (mask_is_costly<typename Hooks::MaskRow>()) {
      bits |= visible_in_block<Config, Hooks>(args, row, lane, mask_parts, keys, tile, slot)
              << n * 4;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = keys.at(tile, slot + i % 2);
        bool visible = key < args.attend.n_k;
        if constexpr (Config::kHasMask) {
          visible = visible && sees<Hooks>(args, mask_parts.of(i / 2), lane.q(i / 2), key,
                                           lane.h(i / 2), row.b);
        }
        bits |= static_cast<u32>(visible) << (n * 4 + i);
      }
    }
  }
  return bits;
}

/// The mask on the t-th tile of a group, asked about each key.
template <class Config, class Hooks, class Args, class Lane, int kBlocks>
__device__ __forceinline__ void ask_mask(const Args& args, const WorkTile& row, const Lane& lane,
                                         float (&scores)[kBlocks][4], TileRef tile, int t,
                                         const TileKeys<Config>& keys) {
  constexpr int kTileBlocks = Config::kTileK / 8, kWordBlocks = smaller(kTileBlocks, 8);
  const int slot = first_slot_of_lane();
#pragma unroll
  for (int n = 0; n < kTileBlocks; n += kWordBlocks) {
    const u32 bits = tile.exists() ? visible_scores<Config, Hooks, kWordBlocks>(
                                         args, row, lane, keys, tile, slot + n * 8)
                                   : 0;
#pragma unroll
    for (int bit = 0; bit < 4 * kWordBlocks; ++bit) {
      float& score = scores[t * kTileBlocks + n + bit / 4][bit % 4];
      if ((bits >> bit & 1) == 0) score = unseen_score<weight_kind<Config>()>();
    }
  }
}

/// Where consumers look ahead, the compiler takes the warp for divergent behind the ranges.
template <class Config, class Hooks>
inline constexpr bool kHasKeyRanges = !Config::kGathers && !WgmmaShape<Config>::kLooksAhead &&
                                      Hooks::MaskRow::kRanges > 0 &&
                                      (!kHasConditions<Hooks> ||
                                       LaneRowsOf<Config>::kAreNeighbours);
/// Does the warp hold values of distances while products are under way?
template <class Config, class Hooks>
__host__ __device__ constexpr bool holds_distances() {
  if constexpr (Config::kHasScore) {
    return Hooks::ScoreRow::kRestHasDistance;
  } else {
    return false;
  }
}
/// Are ranges read while products are under way? Three warpgroups have no registers for it, nor for
/// two ranges beside distances or where the producer takes some.
template <class Config, class Hooks>
inline constexpr bool kReadsKeyRanges =
    Config::kWarpgroups == 2 && kHasKeyRanges<Config, Hooks>&& Hooks::MaskRow::kReadsParameters &&
    !kHasConditions<Hooks> &&
    !(Hooks::MaskRow::kRanges > 1 &&
      (holds_distances<Config, Hooks>() || has_long_bounds<Config>()));

/// Of a missing tile: behind all keys.
template <class Config, class Args>
__device__ __forceinline__ int first_key_of_lane(const Args& args, TileRef tile,
                                                 const TileKeys<Config>& keys) {
  return tile.exists() ? keys.at(tile, first_slot_of_lane()) : args.attend.n_k;
}

template <class Config, class Hooks, class Args, class Lane, int kBlocks, class Ranges>
__device__ __forceinline__ void apply_mask(const Args& args, const WorkTile& row, const Lane& lane,
                                           float (&scores)[kBlocks][4], TileRef tile, int t,
                                           const TileKeys<Config>& keys, const Ranges& ranges) {
  if constexpr (kHasKeyRanges<Config, Hooks>) {
    constexpr int kTileBlocks = Config::kTileK / 8;
    constexpr WeightKind kKind = weight_kind<Config>();
    const int k = first_key_of_lane(args, tile, keys);
    auto* const of_tile = scores + t * kTileBlocks;
    if constexpr (kHasConditions<Hooks>) {
      apply_mask_bits<kKind>(of_tile, mask_bits<Hooks, kTileBlocks>(args, lane, k, row.b));
      apply_ranges_besides<Hooks, kTileBlocks, kKind>(args, of_tile, lane, k, row.b);
    } else {
      apply_key_ranges<Hooks, kTileBlocks, kKind>(args, of_tile, lane, k, row.b, ranges);
    }
  } else {
    ask_mask<Config, Hooks>(args, row, lane, scores, tile, t, keys);
  }
}

/// Of gathered keys: hides those of the t-th tile of a group that the warpgroup leaves out.
template <class Config, int kBlocks>
__device__ __forceinline__ void hide_left_out(float (&scores)[kBlocks][4], TileRef tile, int t,
                                              const TileKeys<Config>& keys) {
  constexpr int kTileBlocks = Config::kTileK / 8, kWordBlocks = 4;
  static_assert(kTileBlocks % kWordBlocks == 0);
#pragma unroll
  for (int n = 0; n < kTileBlocks; n += kWordBlocks) {
    const u32 kept = keys.kept_word(tile, n * 8) >> first_slot_of_lane();
#pragma unroll
    for (int bit = 0; bit < 4 * kWordBlocks; ++bit) {
      float& score = scores[t * kTileBlocks + n + bit / 4][bit % 4];
      if ((kept >> (bit / 4 * 8 + bit % 2) & 1u) == 0)
        score = unseen_score<weight_kind<Config>()>();
    }
  }
}

/// Does a row of the lane hide a tile, because its head does not keep it?
template <class Config, class Args, class Lane>
__device__ __forceinline__ bool hides(const Args& args, const WorkTile& row, const Lane& lane,
                                      int r, TileRef tile) {
  if constexpr (hides_rows<Config>() && !Config::kSharedHeads)
    return !keeps_tile<Config>(args, row, lane.h(r), tile.index());
  return false;
}

/// On the t-th tile of a group, which is there.
template <class Config, class Args, class Lane, int kBlocks>
__device__ __forceinline__ void hide_rows(const Args& args, const WorkTile& row, const Lane& lane,
                                          float (&scores)[kBlocks][4], TileRef tile, int t) {
  constexpr int kTileBlocks = Config::kTileK / 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const bool is_hidden = hides<Config>(args, row, lane, r, tile);
#pragma unroll
    for (int n = t * kTileBlocks; n < (t + 1) * kTileBlocks; ++n) {
      if (is_hidden) scores[n][2 * r] = unseen_score<weight_kind<Config>()>();
      if (is_hidden) scores[n][2 * r + 1] = unseen_score<weight_kind<Config>()>();
    }
  }
}

/// Hook and mask on the scores of group g of a step; they are natural logits, or in `unit`, behind
/// a score hook. `ranges`: LaneRanges of the lane, or UnreadRanges.
template <class Config, class Hooks, class Args, class Lane, int kBlocks, class Message,
          class Ranges = UnreadRanges>
__device__ __forceinline__ void complete_scores(const Args& args, const WorkTile& row,
                                                const Lane& lane, float (&scores)[kBlocks][4],
                                                int g, const Message& step,
                                                const TileKeys<Config>& keys = {},
                                                const ScoreUnit& unit = {},
                                                const Ranges& ranges = {}) {
  constexpr int kTiles = WgmmaShape<Config>::kGroupTiles;
  if constexpr (Config::kHasScore) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      apply_score_hook<Config, Hooks>(args, row, lane, scores, step.tiles[g * kTiles + t], t, keys,
                                      unit);
  }
  if (__builtin_expect(!step.has(Message::kNeedsMaskOrReport), true)) return;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const TileRef tile = step.tiles[g * kTiles + t];
    if (!tile.exists() || tile.needs_mask())
      apply_mask<Config, Hooks>(args, row, lane, scores, tile, t, keys, ranges);
    if constexpr (hides_rows<Config>()) {
      if (tile.exists() && tile.needs_mask()) hide_rows<Config>(args, row, lane, scores, tile, t);
    }
    if constexpr (WgmmaShape<Config>::kOwnColumns) {
      if (step.has(Message::kLeavesSome)) hide_left_out(scores, tile, t, keys);
    }
  }
}

/// The same on a lane's part of one block of keys, from `slot` of the tile on.
template <class Config, class Hooks, class Args, class Lane>
__device__ __forceinline__ void complete_block(const Args& args, const WorkTile& row,
                                               const Lane& lane, float (&block)[4], TileRef tile,
                                               int slot, const TileKeys<Config>& keys) {
  const auto mask_parts = prepare_lane_mask<Hooks>(args, lane, row.b);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int query = lane.q(i / 2), head = lane.h(i / 2), key = keys.at(tile, slot + i % 2);
    if constexpr (Config::kHasScore)
      block[i] = Hooks::score(args, block[i] * args.attend.scale, query, key, head, row.b);
    if constexpr (WgmmaShape<Config>::kOwnColumns) {
      if ((keys.kept_word(tile, slot) >> (slot + i % 2) % 32 & 1u) == 0) block[i] = -kInfinity;
    }
    if (tile.exists() && !tile.needs_mask()) continue;
    bool visible = tile.exists() && key < args.attend.n_k;
    if constexpr (Config::kHasMask)
      visible = visible && sees<Hooks>(args, mask_parts.of(i / 2), query, key, head, row.b);
    if constexpr (hides_rows<Config>())
      visible = visible && !hides<Config>(args, row, lane, i / 2, tile);
    if (!visible) block[i] = -kInfinity;
  }
}

/// A warp's scores of a step whose keys are no longer in shared memory; Q still is, at `queries`.
/// With hook and mask, block by block: the expressions stand here once. `key_rows`: where rows of
/// keys lie.
template <class Config, class Hooks, class Args, class Lane, class KeyRows, int kBlocks,
          class Message>
__device__ __forceinline__ void multiply_again(const Args& args, const WorkTile& row,
                                               const Lane& lane, const KeyRows& key_rows,
                                               float (&scores)[kBlocks][4], const Message& step,
                                               u32 queries, int warp,
                                               const TileKeys<Config>& step_keys = {}) {
  using Element = typename Config::Element;
  using Shape = WgmmaShape<Config>;
  // Of a key of the step, counted through its tiles: the tile, and the key's place in it.
  const auto locate = [&](int& slot) {
    TileRef tile = step.tiles[0];
#pragma unroll
    for (int t = 1; t < Shape::kGroupTiles; ++t) {
      if (slot < Config::kTileK) break;
      tile = step.tiles[t];
      slot -= Config::kTileK;
    }
    return tile;
  };
  using Key = decltype(key_rows.at(0));  // an address, or of codes also their scale
  const auto row_of = [&](int slot) -> Key {
    const TileRef tile = locate(slot);
    const int key = tile.exists() ? step_keys.at(tile, slot) : args.attend.n_k;
    return key < args.attend.n_k ? key_rows.at(key) : Key{};
  };
  const auto complete = [&](float(&block)[4], int slot) {
    const TileRef tile = locate(slot);
    complete_block<Config, Hooks>(args, row, lane, block, tile, slot + first_slot_of_lane(),
                                  step_keys);
  };
  multiply_warp_queries_keys<Element, typename Shape::QueryTile>(scores, queries, warp, row_of,
                                                                 complete);
}

}  // namespace lacuna
