// The configurations in which the predictor's kernels are tested, and their argument block: shared
// by the kernels (single/predict/*.cpp) and the tests.
#pragma once

#include "args/predict_args.cuh"
#include "base/kinds.cuh"

namespace lacuna {

/// What `keep` was given for a tile, and how often it was asked.
struct TileRecord {
  float score, p, mass_before;
  int rank, visible, calls;
};

/// What a generated kernel has as Args, with the parameters of the hooks in predict_hooks.hpp.
struct PredictKernelArgs {
  AttendArgs attend;
  PredictArgs predict;
  float tau, theta, mass;
  int top, sink, local;
  TileRecord* records;  ///< [n_b, n_h, keep_q_tiles, keep_k_tiles]
};

enum class RowKind { kMean, kTokens, kAntidiagonal, kLast, kNone };

/// One configuration. `keep` is p > tau, or p < tau where it falls; if ranked also rank < top or
/// mass_before + p <= mass; rank < top alone where rows keep their first tiles; and without an
/// estimate the tiles of a sink and a window.
struct PredictCase {
  const char* name;
  RowKind rows;
  int tile_q, tile_k;
  Normalise normalise = Normalise::kSoftmax;
  bool sums = false, causal = false, excludes = false, ranked = false, scored = true;
  bool first = false;
  bool columns_are_tokens = true;  ///< of kMean rows
  int count = 1;                   ///< of kAntidiagonal and kLast
  int bits = 16;
  float temperature = 1;
  QuantGroup group = QuantGroup::kThread;
  bool biased = false;     ///< row_bias and column_bias
  bool threshold = false;  ///< kernels know that `keep` has one
  bool falls = false;
  bool is_f16 = false;
  int head_dim = 64;
};

inline constexpr PredictCase kPooledCases[] = {
    {.name = "sparge",
     .rows = RowKind::kMean,
     .tile_q = 64,
     .tile_k = 64,
     .causal = true,
     .excludes = true,
     .ranked = true,
     .columns_are_tokens = false},
    {.name = "full",
     .rows = RowKind::kMean,
     .tile_q = 16,
     .tile_k = 32,
     .ranked = true,
     .columns_are_tokens = false,
     .head_dim = 96},
    {.name = "plain_sum",
     .rows = RowKind::kMean,
     .tile_q = 32,
     .tile_k = 32,
     .normalise = Normalise::kNone,
     .sums = true,
     .causal = true,
     .columns_are_tokens = false,
     .head_dim = 256},
    {.name = "columns", .rows = RowKind::kMean, .tile_q = 64, .tile_k = 1, .causal = true},
    {.name = "columns_plain",
     .rows = RowKind::kMean,
     .tile_q = 16,
     .tile_k = 1,
     .normalise = Normalise::kNone,
     .head_dim = 96},
    {.name = "columns_excluded",
     .rows = RowKind::kMean,
     .tile_q = 32,
     .tile_k = 1,
     .causal = true,
     .excludes = true,
     .is_f16 = true,
     .head_dim = 256},
    {.name = "columns_ranked", .rows = RowKind::kMean, .tile_q = 64, .tile_k = 1, .ranked = true},
    {.name = "eights",
     .rows = RowKind::kMean,
     .tile_q = 64,
     .tile_k = 8,
     .sums = true,
     .causal = true,
     .excludes = true,
     .ranked = true,
     .is_f16 = true},
    {.name = "sixteens", .rows = RowKind::kMean, .tile_q = 64, .tile_k = 16, .scored = false},
    {.name = "tiles_of_tokens",
     .rows = RowKind::kMean,
     .tile_q = 32,
     .tile_k = 64,
     .causal = true,
     .ranked = true},
    {.name = "sums_of_tokens", .rows = RowKind::kMean, .tile_q = 32, .tile_k = 64, .sums = true},
    {.name = "plain_tokens",
     .rows = RowKind::kMean,
     .tile_q = 32,
     .tile_k = 32,
     .normalise = Normalise::kNone,
     .sums = true,
     .causal = true},
    {.name = "first",
     .rows = RowKind::kMean,
     .tile_q = 64,
     .tile_k = 16,
     .causal = true,
     .excludes = true,
     .scored = false,
     .first = true,
     .columns_are_tokens = false},
    {.name = "first_plain",
     .rows = RowKind::kMean,
     .tile_q = 32,
     .tile_k = 8,
     .normalise = Normalise::kNone,
     .causal = true,
     .scored = false,
     .first = true},
};

inline constexpr int kPooledSmemBytes = 90112;
constexpr bool decides_keys(const PredictCase& c) {
  return c.tile_k == 1 && c.columns_are_tokens && !c.ranked && !c.first;
}
/// Query tiles that a block of predict_pooled takes together.
constexpr int pooled_rows(const PredictCase& c) {
  return decides_keys(c) ? 16 : c.tile_k < 32 ? 2 : 8;
}

/// predict_token_pairs.
inline constexpr PredictCase kPairCases[] = {
    {.name = "sale",
     .rows = RowKind::kTokens,
     .tile_q = 64,
     .tile_k = 32,
     .normalise = Normalise::kLse,
     .causal = true,
     .scored = false,
     .bits = 4,
     .biased = true,
     .threshold = true,
     .head_dim = 128},
    {.name = "sale_closely",
     .rows = RowKind::kTokens,
     .tile_q = 64,
     .tile_k = 32,
     .normalise = Normalise::kLse,
     .causal = true,
     .scored = false,
     .bits = 4,
     .biased = true},
    {.name = "bytes",
     .rows = RowKind::kTokens,
     .tile_q = 128,
     .tile_k = 64,
     .normalise = Normalise::kPreviousLse,
     .scored = false,
     .bits = 8,
     .group = QuantGroup::kBlock,
     .biased = true,
     .threshold = true},
    {.name = "falling",
     .rows = RowKind::kTokens,
     .tile_q = 256,
     .tile_k = 32,
     .normalise = Normalise::kLse,
     .causal = true,
     .scored = false,
     .bits = 4,
     .biased = true,
     .threshold = true,
     .falls = true},
    {.name = "plain",
     .rows = RowKind::kTokens,
     .tile_q = 256,
     .tile_k = 128,
     .normalise = Normalise::kLse,
     .causal = true,
     .scored = false,
     .bits = 8,
     .group = QuantGroup::kWarp,
     .threshold = true,
     .head_dim = 128},
    {.name = "plain4",
     .rows = RowKind::kTokens,
     .tile_q = 64,
     .tile_k = 32,
     .normalise = Normalise::kPreviousLse,
     .scored = false,
     .bits = 4},
};

/// predict_exact_sums and predict_exact_largest.
inline constexpr PredictCase kExactCases[] = {
    {.name = "fg_cached",
     .rows = RowKind::kTokens,
     .tile_q = 128,
     .tile_k = 1,
     .scored = false,
     .head_dim = 128},
    {.name = "fg_previous",
     .rows = RowKind::kTokens,
     .tile_q = 64,
     .tile_k = 8,
     .normalise = Normalise::kPreviousLse,
     .causal = true,
     .scored = false,
     .is_f16 = true},
    {.name = "causal",
     .rows = RowKind::kTokens,
     .tile_q = 64,
     .tile_k = 1,
     .causal = true,
     .scored = false},
    {.name = "reference",
     .rows = RowKind::kTokens,
     .tile_q = 128,
     .tile_k = 16,
     .normalise = Normalise::kLse,
     .causal = true,
     .scored = false},
    {.name = "fours",
     .rows = RowKind::kTokens,
     .tile_q = 64,
     .tile_k = 4,
     .scored = false,
     .temperature = 1.5F},
};

inline constexpr PredictCase kSelectCases[] = {
    {.name = "streaming",
     .rows = RowKind::kNone,
     .tile_q = 128,
     .tile_k = 64,
     .causal = true,
     .scored = false},
    {.name = "static_columns", .rows = RowKind::kNone, .tile_q = 32, .tile_k = 1, .scored = false},
    {.name = "vertical",
     .rows = RowKind::kLast,
     .tile_q = 64,
     .tile_k = 1,
     .sums = true,
     .causal = true,
     .ranked = true,
     .count = 64},
    {.name = "vertical_first",
     .rows = RowKind::kLast,
     .tile_q = 64,
     .tile_k = 1,
     .sums = true,
     .causal = true,
     .scored = false,
     .first = true,
     .count = 64},
    {.name = "last_tiles",
     .rows = RowKind::kLast,
     .tile_q = 64,
     .tile_k = 64,
     .causal = true,
     .count = 20,
     .is_f16 = true},
    {.name = "last_eights",
     .rows = RowKind::kLast,
     .tile_q = 32,
     .tile_k = 8,
     .normalise = Normalise::kLse,
     .sums = true,
     .ranked = true,
     .scored = false,
     .count = 128},
};

inline constexpr int kSelectSmemBytes = 16384;

/// Whole 16 rows of a tile; those of cells, of several.
constexpr int token_rows(const PredictCase& c) {
  if (c.rows == RowKind::kAntidiagonal) return 128;
  const int rows = c.rows == RowKind::kLast ? c.count : c.tile_q;
  return (rows + 15) / 16 * 16;
}
/// Query tiles that a block takes together.
constexpr int token_tiles(const PredictCase& c) {
  return c.rows == RowKind::kAntidiagonal ? token_rows(c) / (c.tile_q / c.count) : 1;
}
constexpr int token_smem_bytes(const PredictCase& c) {
  if (c.rows == RowKind::kAntidiagonal)
    return 3 * 256 * (c.head_dim % 64 == 0 ? 64 : 32) * 2 + 2048;
  return (token_rows(c) + 128) * c.head_dim * 2 + 4096;
}
/// Scratch floats for each tile, of a block.
constexpr int token_planes(const PredictCase& c) {
  if (c.rows != RowKind::kAntidiagonal) return c.ranked ? 4 : c.first ? 1 : 0;
  const bool plain = c.normalise == Normalise::kNone;
  const int planes = (!plain || c.sums ? 1 : 0) + (c.scored || !c.sums || plain ? 1 : 0);
  return token_rows(c) * planes + (c.ranked ? 4 : 2);
}

constexpr int exact_smem_bytes(const PredictCase& c) { return 1536 * c.head_dim + 2048; }
constexpr int token_pair_smem_bytes(const PredictCase& c) { return 1280 * c.head_dim + 16384; }

}  // namespace lacuna
