// One row of the predictor's tiles: a query tile of one head against all key tiles, and what the
// spec's hooks say of a tile in it. Bounds are inclusive and clamped to the last token.
#pragma once

#include "arch/warp.cuh"
#include "args/predict_args.cuh"
#include "base/kinds.cuh"
#include "base/mask_pair.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/tile_classes.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

struct KeepRow {
  int i, h, b;
  int q0, q1;
};

template <class Config, class Args>
__device__ __forceinline__ KeepRow keep_row_of(const Args& args, int b, int h, int i) {
  const int q0 = i * Config::kTileQ;
  return {i, h, b, q0, smaller(q0 + Config::kTileQ - 1, args.attend.n_q - 1)};
}

/// By number in arrays [n_b, n_h, keep_q_tiles].
template <class Config, class Args>
__device__ __forceinline__ KeepRow locate_keep_row(const Args& args, int number) {
  const int head = number / args.predict.keep_q_tiles;
  const int b = head / args.attend.n_h;
  return keep_row_of<Config>(args, b, head - b * args.attend.n_h,
                             number - head * args.predict.keep_q_tiles);
}

/// Neighbouring query tiles of a head that a block takes together.
struct RowGroup {
  int b, h;
  int first, rows;  ///< tiles
};

template <int kRows, class Args>
__device__ __forceinline__ int count_row_groups(const Args& args) {
  return args.attend.n_b * args.attend.n_h * ceil_div(args.predict.keep_q_tiles, kRows);
}
template <int kRows, class Args>
__device__ __forceinline__ RowGroup locate_row_group(const Args& args, int number) {
  const int groups_of_head = ceil_div(args.predict.keep_q_tiles, kRows);
  const int head = number / groups_of_head, b = head / args.attend.n_h;
  const int first = (number - head * groups_of_head) * kRows;
  return {b, head - b * args.attend.n_h, first, smaller(kRows, args.predict.keep_q_tiles - first)};
}
template <class Config, class Args>
__device__ __forceinline__ KeepRow keep_row_of(const Args& args, const RowGroup& group, int r) {
  return keep_row_of<Config>(args, group.b, group.h, group.first + r);
}

/// Of a query head in arrays [n_b, n_h], and of its KV head in arrays [n_b, n_h_kv].
template <class Args>
__device__ __forceinline__ long long query_head(const Args& args, int b, int h) {
  return static_cast<long long>(b) * args.attend.n_h + h;
}
template <class Args>
__device__ __forceinline__ long long key_head(const Args& args, int b, int h) {
  const int heads = args.attend.n_h / args.attend.heads_per_kv;
  return static_cast<long long>(b) * heads + h / args.attend.heads_per_kv;
}

/// The bits of a row that this step decides.
template <class Config, class Args>
__device__ __forceinline__ unsigned* kept_words(const Args& args, const KeepRow& row) {
  const long long number = query_head(args, row.b, row.h) * args.predict.keep_q_tiles + row.i;
  unsigned* const bits =
      Config::kStep == Step::kBefore ? args.predict.kept_before : args.predict.kept;
  return bits + number * args.predict.keep_words;
}
/// Whether the step before kept tile j.
template <class Args>
__device__ __forceinline__ bool was_kept(const Args& args, const KeepRow& row, int j) {
  const long long number = query_head(args, row.b, row.h) * args.predict.keep_q_tiles + row.i;
  return (args.predict.kept_before[number * args.predict.keep_words + j / 32] >> j % 32 & 1u) != 0;
}

template <class Config, class Args>
__device__ __forceinline__ int last_key(const Args& args, int j) {
  return smaller((j + 1) * Config::kTileK, args.attend.n_k) - 1;
}

/// Do bounds of the mask say too little of a cell, so that its pairs are asked
/// (compiler/passes/ask_pairs.cpp)?
LACUNA_OPTIONAL_FIELD(bool, asks_cells, kAsksCells, false)

/// Do bounds of the mask leave anything of these keys visible?
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool sees_keys(const Args& args, const KeepRow& row, int k0, int k1) {
  if constexpr (!Config::kHasMask) return true;
  return Hooks::tile_visible(args, row.q0, row.q1, k0, k1, row.h, row.b);
}

/// Does one of these queries see one of these keys? A thread asks pair after pair, until one is
/// visible. `mask_parts`: what prepare_mask has made for the head.
template <class Hooks, class Args, class MaskParts>
__device__ __forceinline__ bool sees_some_pair(const Args& args, const MaskParts& mask_parts,
                                               int q0, int q1, int k0, int k1, int h, int b) {
#pragma unroll 1
  for (int q = q0; q <= q1; ++q) {
#pragma unroll 1
    for (int k = k0; k <= k1; ++k) {
      if (sees<Hooks>(args, mask_parts, q, k, h, b)) return true;
    }
  }
  return false;
}

/// Is a pair of these queries and keys visible, by bounds of the mask and what they leave open?
template <class Config, class Hooks, class Args, class MaskParts>
__device__ __forceinline__ bool sees_cell(const Args& args, const MaskParts& mask_parts, int q0,
                                          int q1, int k0, int k1, int h, int b) {
  if (!Hooks::tile_visible(args, q0, q1, k0, k1, h, b)) return false;
  if constexpr (asks_cells<Config>()) {
    return Hooks::tile_full(args, q0, q1, k0, k1, h, b) ||
           sees_some_pair<Hooks>(args, mask_parts, q0, q1, k0, k1, h, b);
  }
  return true;
}
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool sees_cell(const Args& args, const KeepRow& row, int k0, int k1) {
  if constexpr (Config::kHasMask) {
    return sees_cell<Config, Hooks>(args, prepare_mask<Hooks>(args, row.h, row.b), row.q0, row.q1,
                                    k0, k1, row.h, row.b);
  }
  return true;
}

/// The same of tile j of the predictor, from what is known of the tiles of attend in it.
template <class Config, class Args>
__device__ __forceinline__ bool has_visible_class(const Args& args, const KeepRow& row, int j) {
  constexpr int kRows = Config::kTileQ / Config::kClassQ, kTiles = Config::kTileK / Config::kClassK;
  static_assert(
      kRows * Config::kClassQ == Config::kTileQ && kTiles * Config::kClassK == Config::kTileK,
      "a tile of the predictor is whole tiles of attend");
  const int last = smaller((row.i + 1) * kRows, args.attend.q_tiles);
  const int end = smaller((j + 1) * kTiles, args.attend.k_tiles);
#pragma unroll 1
  for (int i = row.i * kRows; i < last; ++i) {
    const unsigned* const visible = class_words<Config>(args, row.b, row.h, i);
    for (int tile = j * kTiles; tile < end; ++tile) {
      if ((visible[tile / 32] >> tile % 32 & 1u) != 0) return true;
    }
  }
  return false;
}

/// Is tile j visible to the row?
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool sees_tile(const Args& args, const KeepRow& row, int j) {
  if (Config::kStep == Step::kWithin && !was_kept(args, row, j)) return false;
  if constexpr (asks_pairs<Config>()) {
    return has_visible_class<Config>(args, row, j);
  } else {
    return sees_cell<Config, Hooks>(args, row, j * Config::kTileK, last_key<Config>(args, j));
  }
}

/// What a row sees of the tiles of a word of its bits: nothing, every one, or each is to be asked.
enum class WordView { kNone, kAll, kSome };
template <class Config, class Hooks, class Args>
__device__ __forceinline__ WordView view_of_word(const Args& args, const KeepRow& row, int word) {
  if constexpr (!Config::kHasMask && Config::kStep != Step::kWithin) return WordView::kAll;
  const int k0 = word * 32 * Config::kTileK;
  const int k1 = last_key<Config>(args, smaller(word * 32 + 31, args.predict.keep_k_tiles - 1));
  if (!sees_keys<Config, Hooks>(args, row, k0, k1)) return WordView::kNone;
  if constexpr (Config::kStep == Step::kWithin) return WordView::kSome;
  return Hooks::tile_full(args, row.q0, row.q1, k0, k1, row.h, row.b) ? WordView::kAll
                                                                      : WordView::kSome;
}

/// Which of this thread's tiles first + e * kThreads + its index a row sees, bit e of 32: a word at
/// a time where the mask says enough. By all threads; `first` is a multiple of 32 * kThreads.
template <class Config, class Hooks, int kThreads, class Args>
__device__ __forceinline__ u32 seen_by_thread(const Args& args, const KeepRow& row, int first = 0) {
  constexpr int kWarps = kThreads / 32;
  const int tiles = args.predict.keep_k_tiles;
  const int own_word = first / 32 + lane_index() * kWarps + warp_index();
  const WordView view = own_word < args.predict.keep_words
                            ? view_of_word<Config, Hooks>(args, row, own_word)
                            : WordView::kNone;
  const u32 all = __ballot_sync(kAllLanes, view == WordView::kAll);
  const u32 some = __ballot_sync(kAllLanes, view == WordView::kSome);
  u32 seen = all;
#pragma unroll 1
  for (u32 left = some; left != 0; left &= left - 1) {
    const int e = __ffs(static_cast<int>(left)) - 1;
    const int j = first + e * kThreads + thread_index();
    if (j < tiles && sees_tile<Config, Hooks>(args, row, j)) seen |= 1u << e;
  }
  const int end = tiles - first - thread_index();  // of the last word some lanes have no tile
  const int count = end > 0 ? ceil_div(end, kThreads) : 0;
  return count < 32 ? seen & ((1u << count) - 1u) : seen;
}

struct TileSimilarity {
  float q = 0.0f, k = 0.0f;
};
template <class Config, class Args>
__device__ __forceinline__ TileSimilarity similarity_of(const Args& args, const KeepRow& row,
                                                        int j) {
  TileSimilarity similar;
  if constexpr (Config::kUsesSimilarQ) {
    similar.q =
        args.predict
            .q_similarity[query_head(args, row.b, row.h) * args.predict.keep_q_tiles + row.i];
  }
  if constexpr (Config::kUsesSimilarK) {
    similar.k =
        args.predict.k_similarity[key_head(args, row.b, row.h) * args.predict.keep_k_tiles + j];
  }
  return similar;
}

template <class Config>
inline constexpr bool kExcludesTiles = Config::kHasExclude || Config::kStep == Step::kWithin;

/// Has the tile no part in the estimate, although it is visible?
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool excludes_tile(const Args& args, const KeepRow& row, int j) {
  if (Config::kStep == Step::kWithin && !was_kept(args, row, j)) return true;
  if constexpr (!Config::kHasExclude) return false;
  const TileSimilarity similar = similarity_of<Config>(args, row, j);
  return Hooks::exclude(args, similar.q, similar.k, row.i, j, row.q0, row.q1, j * Config::kTileK,
                        last_key<Config>(args, j), row.h, row.b);
}

/// What `keep` may read of a tile besides its place.
struct TileValue {
  float score = 0.0f, p = 0.0f;
  int rank = 0;
  float mass_before = 0.0f;
};

/// What `keep` computes from nothing but the row's place, the lengths and parameters: a loop over
/// tiles has it computed once.
template <class Hooks, class Args>
__device__ __forceinline__ typename Hooks::KeepParts keep_parts(const Args& args,
                                                                const KeepRow& row) {
  return Hooks::keep_parts(args, row.i, row.q0, row.q1, row.h, row.b);
}

/// `visible`: tiles of the row that the mask leaves visible, of which this must be one. `parts`:
/// keep_parts of the row.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool keeps_tile(const Args& args, const KeepRow& row,
                                           const typename Hooks::KeepParts& parts, int j,
                                           const TileValue& value, int visible) {
  if (Config::kStep == Step::kUnion && was_kept(args, row, j)) return true;
  const TileSimilarity similar = similarity_of<Config>(args, row, j);
  return Hooks::keep(args, parts, value.score, value.p, value.rank, value.mass_before, visible,
                     similar.q, similar.k, row.i, j, row.q0, row.q1, j * Config::kTileK,
                     last_key<Config>(args, j), row.h, row.b);
}
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool keeps_tile(const Args& args, const KeepRow& row, int j,
                                           const TileValue& value, int visible) {
  return keeps_tile<Config, Hooks>(args, row, keep_parts<Hooks>(args, row), j, value, visible);
}

/// The part of `keep` that is about the rank, where tiles differ by nothing else in it
/// (Config::kKeepsFirst).
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool keeps_rank(const Args& args, const KeepRow& row, int rank,
                                           int visible) {
  const TileSimilarity similar = similarity_of<Config>(args, row, 0);
  return Hooks::keep_rank(args, rank, visible, similar.q, row.i, row.q0, row.q1, row.h, row.b);
}

/// The part of `keep` that is about p, where tiles differ by nothing else in it
/// (Config::kHasThreshold).
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool keeps_p(const Args& args, const KeepRow& row, float p) {
  const TileSimilarity similar = similarity_of<Config>(args, row, 0);
  return Hooks::keep_p(args, p, similar.q, row.i, row.q0, row.q1, row.h, row.b);
}

}  // namespace lacuna
