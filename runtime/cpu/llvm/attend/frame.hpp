// What generated code and the C++ around it share: one Frame for each thread, describing the tile
// at hand. Generated code reads it by offset, so it is a plain struct of pointers and 32-bit words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/expr/evaluate.hpp"

namespace lacuna::host {

/// What the largest weight becomes in e4m3.
inline constexpr float kWeightRange = 448.0F;

/// Rows of a warp-scoped gate, and the rows worked on together.
inline constexpr int kGroupRows = 16;

/// Row arrays hold tile_q rows; panels are described in panels.hpp. All values are f32, logits in
/// natural units.
struct Frame {
  const ParamView* params = nullptr;
  const float* q = nullptr;    ///< [tile_q][d]
  const float* k = nullptr;    ///< key panels of this tile: [panel][d][panel keys]
  const float* v = nullptr;    ///< value panels of this tile: [panel][tile_k][panel columns]
  float* s = nullptr;          ///< [tile_q][padded keys]: logits, then probabilities
  float* o = nullptr;          ///< [tile_q][padded d]: accumulators
  float* tile_max = nullptr;   ///< row maximum of this tile; -inf: no visible key (of a softmax)
  float* row_max = nullptr;    ///< running maximum
  float* row_sum = nullptr;    ///< running denominator
  float* row_shift = nullptr;  ///< running maximum, 0 where that is -inf
  float* pending = nullptr;    ///< factor that o still has to be multiplied with
  // Quantised attention: the logit is scale * (dot * q_scale * k_scale + row_bias + column_bias).
  float* q_scale = nullptr;          ///< [tile_q]
  float* row_bias = nullptr;         ///< [tile_q]
  float* k_scale = nullptr;          ///< [padded keys]
  float* column_bias = nullptr;      ///< [padded keys]
  const float* v_scale = nullptr;    ///< [d], of e4m3 values
  std::int32_t* gathered = nullptr;  ///< [padded keys] true index of each gathered key
  std::int32_t n_b = 0, n_h = 0, n_h_kv = 0, n_q = 0, n_k = 0;
  std::int32_t h = 0, b = 0, i = 0, j = 0, n_i = 0, n_j = 0;
  std::int32_t q0 = 0, q1 = 0, k0 = 0, k1 = 0;  ///< first and last token, clamped to the lengths
  float scale = 0;                              ///< softmax scale
  std::int32_t apply_mask = 0;                  ///< partial tiles: 0 leaves only the bound on keys
  bool v_is_finite = true;                      ///< all of this tile's values
};

enum class TileClass : std::int32_t { kEmpty = 0, kPartial = 1, kFull = 2 };

/// The functions generated for one Program.
struct Kernels {
  /// Reads q0..k1, h, b of the frame; returns a TileClass.
  std::int32_t (*classify)(const Frame*) = nullptr;
  /// The same of query q and the tile's keys, by the mask of each. Null: not with Attend::pairs.
  std::int32_t (*classify_row)(const Frame*, std::int32_t q) = nullptr;
  /// s and tile_max for rows [begin, end), multiples of the block's rows.
  void (*scores_full)(const Frame*, std::int64_t begin, std::int64_t end) = nullptr;
  void (*scores_partial)(const Frame*, std::int64_t begin, std::int64_t end) = nullptr;
  /// Skip and not exempt? Null: no gate.
  std::int32_t (*gate)(const Frame*, float tile_max, float gap) = nullptr;
  /// The logit of row q that no key has. Null: there is none.
  float (*sink)(const Frame*, std::int32_t q) = nullptr;
  /// s becomes probabilities; row_max, row_sum, row_shift, pending follow. Multiples of 16 rows. Of
  /// weights without a denominator row_sum is 1, and nothing else follows.
  void (*softmax)(const Frame*, std::int64_t begin, std::int64_t end) = nullptr;
  /// o = o * pending + s v; pending = 1. `accumulate` is for values that are finite; with the other
  /// one a key of weight 0 (one that the row does not see) has no part in s v, whatever it holds.
  void (*accumulate)(const Frame*, std::int64_t begin, std::int64_t end) = nullptr;
  void (*accumulate_nonzero)(const Frame*, std::int64_t begin, std::int64_t end) = nullptr;
  /// `rows` rows of q at `source`, `stride` elements apart, to f32 [rows][d].
  void (*pack_q)(const void* source, std::int64_t stride, std::int64_t rows, float* out) = nullptr;
  /// One tile of keys / values into panels; missing keys repeat the last one / are not written.
  void (*pack_k)(const void* source, std::int64_t stride, std::int64_t keys, float* out) = nullptr;
  /// Returns 1 if all values are finite, else 0.
  std::int32_t (*pack_v)(const void* source, std::int64_t stride, std::int64_t keys,
                         float* out) = nullptr;
  /// o * pending / row_sum (and * v_scale / 448) for `rows` rows, rounded to the dtype; 0 where
  /// row_sum is 0.
  void (*store_o)(const Frame*, void* target, std::int64_t stride, std::int64_t rows) = nullptr;
};

}  // namespace lacuna::host
