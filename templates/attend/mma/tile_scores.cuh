// Scores of a tile: products of queries and keys, the spec's formula and the mask.
#pragma once

#include "attend/block_loop.cuh"
#include "attend/key_ranges.cuh"
#include "attend/mask_bits.cuh"
#include "attend/mma/attend_block.cuh"
#include "attend/row_ends.cuh"
#include "attend/score_formula.cuh"
#include "base/mask_pair.cuh"
#include "base/pin.cuh"
#include "tile/byte_product.cuh"

namespace lacuna {

/// The two keys of a lane in block n, of 8 keys, of tile j. The empty slots after the last gathered
/// key are of key n_k.
template <class Block>
__device__ __forceinline__ void find_lane_keys(int (&k)[2], const Block& at, int j, int n) {
  using Config = typename Block::Config;
  const int slot = j * Config::kTileK + lane_index() % 4 * 2;
  k[0] = slot + n * 8, k[1] = slot + n * 8 + 1;
  if constexpr (Config::kGathers) {
    const int2 keys = *reinterpret_cast<const int2*>(at.gathered.keys + k[0]);
    k[0] = k[0] < at.gathered.count ? keys.x : at.args.attend.n_k;
    k[1] = k[1] < at.gathered.count ? keys.y : at.args.attend.n_k;
  }
}

/// Calls body(block, accumulator, query token, key token) for each score of this lane.
template <class Block, class Body>
__device__ __forceinline__ void for_each_score(const Block& at, int j, Body body) {
  using Shape = typename Block::Shape;
  const int q = at.first_row + lane_index() / 4;
#pragma unroll
  for (int n = 0; n < Shape::kKeyBlocks; ++n) {
    int k[2];
    find_lane_keys(k, at, j, n);
#pragma unroll
    for (int i = 0; i < 4; ++i) body(n, i, q + i / 2 * 8, k[i % 2]);
  }
}

/// Scores of key tile j, the t-th visited, in units of products of queries and keys.
template <class Block>
__device__ __forceinline__ void score_tile(Block& at, typename Block::Scores& scores, int t,
                                           int j) {
  using Shape = typename Block::Shape;
  using KeyTile = typename Block::KeyTile;
  using Element = typename Block::Element;
  if constexpr (Shape::kHasInt8Keys) {
    const auto terms = at.logits.read(j);
    int sums[Shape::kKeyBlocks][4];
    multiply_queries_keys_s8<KeyTile>(sums, at.queries, at.key_slot(t));
    at.logits.convert(scores, sums, terms);
  } else {
    multiply_queries_keys<Element, KeyTile>(scores, at.queries, at.key_slot(t));
  }
}

/// Natural units behind the hook.
template <class Block>
__device__ __forceinline__ void apply_score_hook(const Block& at, typename Block::Scores& scores,
                                                 int j) {
  using Config = typename Block::Config;
  using Hooks = typename Block::Hooks;
  using Shape = typename Block::Shape;
  if constexpr (Config::kGathers && formula_is_costly<typename Hooks::ScoreRow>()) {
    const int q = at.first_row + lane_index() / 4;
    for_each_group<Shape::kKeyBlocks, 1>(scores, [&](float(*block)[4], int n) {
      int keys[2];
      find_lane_keys(keys, at, j, n);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        block[0][i] = Hooks::score(at.args, block[0][i] * at.args.attend.scale, q + i / 2 * 8,
                                   keys[i % 2], at.row.h, at.row.b);
    });
  } else if constexpr (Config::kGathers) {
    for_each_score(at, j, [&](int n, int i, int q, int k) {
      scores[n][i] =
          Hooks::score(at.args, scores[n][i] * at.args.attend.scale, q, k, at.row.h, at.row.b);
    });
  } else {
    const int k = j * Config::kTileK + lane_index() % 4 * 2;
    apply_score_formula<Hooks, Shape::kKeyBlocks>(
        at.args, scores, LaneRows{at.first_row + lane_index() / 4, at.row.h}, k, at.row.b);
  }
}

/// Asks a mask that takes many instructions in a loop, so that it stands here twice (for the two
/// keys of a lane in a block).
template <class Block>
__device__ __forceinline__ void apply_costly_mask(const Block& at, typename Block::Scores& scores,
                                                  int j) {
  using Config = typename Block::Config;
  using Hooks = typename Block::Hooks;
  using Shape = typename Block::Shape;
  constexpr float kUnseen = unseen_score<weight_kind<Config>()>();
  const auto mask_parts = prepare_mask<Hooks>(at.args, at.row.h, at.row.b);
  const int q = at.first_row + lane_index() / 4;
  for_each_group<Shape::kKeyBlocks, 1>(scores, [&](float(*block)[4], int n) {
    int keys[2];
    find_lane_keys(keys, at, j, n);
    u32 bits = 0;
#pragma unroll 1
    for (int r = 0; r < 2; ++r) {
      int query = q + 8 * r;
      pin(query);  // what follows from tokens is worked out again: registers are short
      pin(keys[0]);
      pin(keys[1]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int k = keys[i];
        const bool visible = k < at.args.attend.n_k &&
                             sees<Hooks>(at.args, mask_parts, query, k, at.row.h, at.row.b);
        bits |= static_cast<u32>(visible) << (2 * r + i);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((bits >> i & 1u) == 0) block[0][i] = kUnseen;
    }
  });
}

/// Scores of keys that a row does not see become ones whose weight is 0.
template <class Block>
__device__ __forceinline__ void apply_mask(const Block& at, typename Block::Scores& scores, int j) {
  using Config = typename Block::Config;
  using Hooks = typename Block::Hooks;
  using Shape = typename Block::Shape;
  constexpr WeightKind kKind = weight_kind<Config>();
  if constexpr (!Config::kGathers && Hooks::MaskRow::kRanges > 0) {
    constexpr int kBlocks = Shape::kKeyBlocks;
    const LaneRows lane{at.first_row + lane_index() / 4, at.row.h};
    const int k = j * Config::kTileK + lane_index() % 4 * 2;
    if constexpr (kHasConditions<Hooks>) {
      apply_mask_bits<kKind>(scores, mask_bits<Hooks, kBlocks>(at.args, lane, k, at.row.b));
      apply_ranges_besides<Hooks, kBlocks, kKind>(at.args, scores, lane, k, at.row.b);
    } else {
      apply_key_ranges<Hooks, kBlocks, kKind>(at.args, scores, lane, k, at.row.b);
    }
  } else if constexpr (mask_is_costly<typename Hooks::MaskRow>()) {
    apply_costly_mask(at, scores, j);
  } else {
    const auto mask_parts = prepare_mask<Hooks>(at.args, at.row.h, at.row.b);
    for_each_score(at, j, [&](int n, int i, int q, int k) {
      bool visible = k < at.args.attend.n_k;
      if constexpr (Config::kHasMask) {
        visible = visible && sees<Hooks>(at.args, mask_parts, q, k, at.row.h, at.row.b);
      }
      if (!visible) scores[n][i] = unseen_score<kKind>();
    });
  }
}

}  // namespace lacuna
