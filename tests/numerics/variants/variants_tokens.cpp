// Variants whose estimates compare tokens: SALE, XAttention, and those that keep single keys.
#include <cmath>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

using oracle::Compared;
using oracle::TileFacts;

std::size_t token_head(const TileFacts& t) { return static_cast<std::size_t>(t.tile.h); }

int token_shift(const Variant& v) { return v.problem.n_k - v.problem.n_q; }

oracle::Predictor& compared(Variant& v, int tile_q, int tile_k, Compared rows, Compared columns) {
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = tile_q, v.predictor->tile_k = tile_k;
  v.predictor->estimate = oracle::EstimateRule{};
  v.predictor->estimate->rows = rows, v.predictor->estimate->columns = columns;
  v.predictor->estimate->bits = 16;
  return *v.predictor;
}

void make_sale(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.01, 1.5);
  const int shift = token_shift(v);
  oracle::Predictor& p = compared(v, 64, 32, Compared::kTokens, Compared::kTokens);
  p.smooth_q = p.smooth_k = true, p.uses_rank = false;
  p.estimate->bits = 4;
  p.estimate->norm = oracle::Norm::kReference;
  p.estimate->reference = [=](int q, int k) { return k < 32 || q + shift - k < 128; };
  p.keep = [=](const TileFacts& t) {
    return t.p > tau[token_head(t)] || tau[token_head(t)] == 0 || t.tile.k0 < 32 ||
           t.tile.q0 + shift - t.tile.k1 < 128;
  };
  v.quantisation.qk_bits = 8;
  v.quantisation.smooth_q = v.quantisation.smooth_k = true;
}

void make_xattention(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.2, 0.9);
  const int shift = token_shift(v);
  oracle::Predictor& p = compared(v, 128, 128, Compared::kAntidiagonal, Compared::kAntidiagonal);
  p.estimate->count = 8, p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[token_head(t)] || t.tile.k0 < 128 || t.tile.k1 >= t.tile.q0 + shift;
  };
}

oracle::Format format_of(const Variant& v) {
  if (v.dtype == DType::kF32) return oracle::kF32;
  return v.dtype == DType::kF16 ? oracle::kF16 : oracle::kBF16;
}

oracle::Predictor& cells_compared(Variant& v, int tile_k, int cell_q, int cell_k) {
  oracle::Predictor& p = compared(v, 128, tile_k, Compared::kCellMean, Compared::kCellMean);
  p.estimate->count = cell_q, p.estimate->column_count = cell_k;
  p.estimate->cells = format_of(v);
  return p;
}

bool is_first_or_diagonal(const TileFacts& t, int shift) {
  return t.tile.j == 0 || t.tile.k1 >= t.tile.q0 + shift;
}

void make_relmax(Variant& v, Random& random) {
  make_causal(v);
  const auto alpha = head_param(v, "alpha", random, 0.05, 0.9);
  const int shift = token_shift(v);
  oracle::Predictor& p = cells_compared(v, 64, 8, 8);
  p.smooth_k = true, p.uses_rank = false;
  p.estimate->norm = oracle::Norm::kRowMax;
  p.keep = [=](const TileFacts& t) {
    return t.p > alpha[token_head(t)] || is_first_or_diagonal(t, shift);
  };
}

/// The first step decides by cells, the second within what it kept by integers.
void make_cascade(Variant& v, Random& random) {
  make_causal(v);
  const auto alpha = head_param(v, "alpha", random, 0.02, 0.5);
  const auto tau = head_param(v, "tau", random, 0.05, 0.5);
  const int shift = token_shift(v);
  oracle::Predictor& first = cells_compared(v, 64, 8, 8);
  first.smooth_k = true, first.uses_rank = false;
  first.estimate->norm = oracle::Norm::kRowMax;
  first.keep = [=](const TileFacts& t) {
    return t.p > alpha[token_head(t)] || is_first_or_diagonal(t, shift);
  };
  const oracle::Predictor before = first;
  oracle::Predictor& p = compared(v, 128, 64, Compared::kTokens, Compared::kTokens);
  p.before = {before};
  p.smooth_q = p.smooth_k = true, p.uses_rank = false;
  p.estimate->bits = 4;
  p.keep = [=](const TileFacts& t) {
    return t.p > tau[token_head(t)] || is_first_or_diagonal(t, shift);
  };
}

/// Integers against the softmax of their row over all keys, in tiles of two steps of keys.
constexpr const char* kIntegerSoftmax = R"json({
  "version": 1, "name": "integer-softmax",
  "params": {"tau": {"shape": "[heads]", "range": [0, 1]}},
  "predictor": {
    "tile": {"q": 64, "k": 128},
    "smooth": ["k"],
    "estimate": {"q": "tokens", "k": "tokens", "bits": 8, "group": "thread"},
    "keep": "p > tau"
  }
})json";

void make_integer_softmax(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.004, 0.012);
  oracle::Predictor& p = compared(v, 64, 128, Compared::kTokens, Compared::kTokens);
  p.smooth_k = true, p.uses_rank = false;
  p.estimate->bits = 8;
  p.keep = [=](const TileFacts& t) { return t.p > tau[token_head(t)]; };
}

/// Integers summed in tiles of half a part of a step, of which each row takes the first.
constexpr const char* kIntegerSums = R"json({
  "version": 1, "name": "integer-sums",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"blocks": {"type": "i32", "shape": "[heads]"}},
  "predictor": {
    "tile": {"q": 128, "k": 32},
    "smooth": ["q", "k"],
    "estimate": {"q": "tokens", "k": "tokens", "bits": 4, "group": "thread", "reduce": "sum"},
    "keep": "rank < blocks"
  }
})json";

void make_integer_sums(Variant& v, Random& random) {
  make_causal(v);
  const auto blocks = head_count(v, "blocks", random, 0, 3);
  oracle::Predictor& p = compared(v, 128, 32, Compared::kTokens, Compared::kTokens);
  p.smooth_q = p.smooth_k = true;
  p.estimate->bits = 4, p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) { return t.rank < blocks[token_head(t)]; };
}

/// Two estimates whose tiles are joined, the second of them by rank.
constexpr const char* kJoinedSteps = R"json({
  "version": 1, "name": "joined-steps",
  "params": {"tau": {"shape": "[heads]", "range": [0, 1]}, "blocks": {"type": "i32", "shape": "[heads]"}},
  "predictor": [
    {"estimate": {"q": "mean(16)", "k": "mean(16)", "normalise": "row_max"}, "keep": "p > tau"},
    {"union": true, "estimate": {"q": "mean(16)", "k": "mean(16)", "reduce": "sum"},
     "keep": "rank < blocks"}
  ]
})json";

void make_joined_steps(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.3, 0.9);
  const auto blocks = head_count(v, "blocks", random, 0, 2);
  oracle::Predictor& first = cells_compared(v, 64, 16, 16);
  first.uses_rank = false;
  first.estimate->norm = oracle::Norm::kRowMax;
  first.keep = [=](const TileFacts& t) { return t.p > tau[token_head(t)]; };
  const oracle::Predictor before = first;
  oracle::Predictor& p = cells_compared(v, 64, 16, 16);
  p.before = {before}, p.joins = true;
  p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) { return t.rank < blocks[token_head(t)]; };
}

/// Two estimates that look at other bands of the head dimension: cells, and some of the queries.
constexpr const char* kBands = R"json({
  "version": 1, "name": "bands",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"tau": {"shape": "[heads]", "range": [0, 1], "doc": "mass of the tiles to keep"},
             "alpha": {"shape": "[heads]", "range": [0, 1], "doc": "share of the largest mass"}},
  "predictor": [
    {"tile": {"q": 128, "k": 64},
     "estimate": {"q": "mean(8)", "k": "mean(16)", "reduce": "sum", "dims": "0:16,32:48"},
     "keep": "p >= alpha * p_max or j == 0"},
    {"union": true, "tile": {"q": 128, "k": 64},
     "estimate": {"q": "stride(32)", "k": "tokens", "dims": "16:32,48:64", "temperature": 2},
     "keep": "mass_before < tau or k1 >= q0 + n_k - n_q"}
  ]
})json";

void make_bands(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.1, 0.7);
  const auto alpha = head_param(v, "alpha", random, 0.3, 0.9);
  const int shift = token_shift(v);
  oracle::Predictor first = cells_compared(v, 64, 8, 16);
  first.estimate->reduction = oracle::Reduction::kSum;
  first.estimate->takes = [](int c) { return c < 48 && c / 16 % 2 == 0; };
  first.keep = [=](const TileFacts& t) {
    return t.p >= alpha[token_head(t)] * t.p_max || t.tile.j == 0;
  };
  oracle::Predictor& p = compared(v, 128, 64, Compared::kStride, Compared::kTokens);
  p.estimate->count = 32, p.estimate->temperature = 2;
  p.estimate->takes = [](int c) { return c < 64 && c / 16 % 2 == 1; };
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[token_head(t)] || t.tile.k1 >= t.tile.q0 + shift;
  };
  p.before = {first}, p.joins = true;
}

/// Only of 128 elements and more.
void make_prism(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.2, 0.8);
  const int shift = token_shift(v);
  oracle::Predictor& p = compared(v, 128, 128, Compared::kMean, Compared::kMean);
  p.smooth_k = true;
  p.estimate->bits = 32;
  oracle::Predictor first = p;
  first.estimate->temperature = 2;
  first.estimate->takes = [](int c) { return c / 32 % 2 == 1; };
  first.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[token_head(t)] || is_first_or_diagonal(t, shift);
  };
  p.estimate->temperature = 4;
  p.estimate->takes = [](int c) { return c / 32 % 2 == 0; };
  p.keep = [=](const TileFacts& t) { return t.mass_before < tau[token_head(t)]; };
  p.before = {first}, p.joins = true;
}

constexpr const char* kSampledRows = R"json({
  "version": 1, "name": "sampled-rows",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"tau": {"shape": "[heads]", "range": [0, 1], "doc": "mass of the tiles to keep"}},
  "predictor": {"tile": {"q": 128, "k": 64},
    "estimate": {"q": "stride(16)", "k": "tokens", "reduce": "sum"},
    "keep": "mass_before < tau or j == 0 or k1 >= q0 + n_k - n_q"}
})json";

/// Every 16th query of a tile, compared with all keys: nothing is said of the others.
void make_sampled_rows(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.2, 0.9);
  const int shift = token_shift(v);
  oracle::Predictor& p = compared(v, 128, 64, Compared::kStride, Compared::kTokens);
  p.estimate->count = 16, p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[token_head(t)] || is_first_or_diagonal(t, shift);
  };
}

void make_subblock(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.3, 0.95);
  const int shift = token_shift(v);
  oracle::Predictor& p = cells_compared(v, 128, 16, 16);
  p.smooth_k = true;
  p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[token_head(t)] || is_first_or_diagonal(t, shift);
  };
}

/// The branch of nsa that selects, by itself: a block has two means of keys.
constexpr const char* kNsaSelected = R"json({
  "version": 1, "name": "nsa-selected",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"blocks": {"type": "i32", "shape": "[heads]"}},
  "predictor": {"tile": {"q": 64, "k": 64},
    "estimate": {"q": "mean(2)", "k": "mean(32)"},
    "keep": "rank < blocks or j == 0 or k1 >= q0 + n_k - n_q - 64"}
})json";

void make_nsa_selected(Variant& v, Random& random) {
  make_causal(v);
  const auto blocks = head_count(v, "blocks", random, 0, 3);
  const int shift = token_shift(v);
  oracle::Predictor& p = cells_compared(v, 64, 2, 32);
  p.tile_q = 64;
  p.keep = [=](const TileFacts& t) {
    return t.rank < blocks[token_head(t)] || t.tile.j == 0 || t.tile.k1 >= t.tile.q0 + shift - 64;
  };
}

/// Cells of other sizes for queries than for keys, among them cells that several warps share.
constexpr const char* kUnevenCells = R"json({
  "version": 1, "name": "uneven-cells",
  "params": {"tau": {"shape": "[heads]", "range": [0, 1]}},
  "predictor": {
    "tile": {"q": 128, "k": 64},
    "estimate": {"q": "mean(4)", "k": "mean(32)", "temperature": 1.5},
    "keep": "p > tau or score > 4.0"
  }
})json";

void make_uneven_cells(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.5, 0.9);
  oracle::Predictor& p = cells_compared(v, 64, 4, 32);
  p.uses_rank = false;
  p.estimate->temperature = 1.5;
  p.keep = [=](const TileFacts& t) { return t.p > tau[token_head(t)] || t.score > 4.0; };
}

void make_flashprefill(Variant& v, Random& random) {
  make_causal(v);
  const auto alpha = head_param(v, "alpha", random, 0.05, 0.9);
  v.params.push_back({"sink", true, {30}, {}});
  v.params.push_back({"window", true, {60}, {}});
  const int shift = token_shift(v);
  oracle::Predictor& p = compared(v, 128, 128, Compared::kMean, Compared::kMean);
  p.smooth_k = true, p.uses_rank = false;
  p.estimate->bits = 32, p.estimate->norm = oracle::Norm::kRowMax;
  p.keep = [=](const TileFacts& t) {
    return t.p >= alpha[token_head(t)] || t.tile.k0 < 30 || t.tile.q0 + shift - t.tile.k1 < 60;
  };
}

/// Keys above c / n_k for one of the queries (`rows` tokens) or for their mean.
void make_fg_attn(Variant& v, Compared rows, Random& random) {
  const double c = as_f32(uniform(random, 0.8, 3));
  const int n_k = v.problem.n_k;
  v.params = {{"c", false, {c}, {}}};
  oracle::Predictor& p = compared(v, 128, 1, rows, Compared::kTokens);
  p.uses_rank = false;
  p.keep = [=](const TileFacts& t) { return t.p > c / n_k; };
  v.reuse = rows == Compared::kTokens ? 15 : 1;
  v.tiling.tile_k = 1;
}

/// Tiles of 64 queries, of which blocks of the wgmma family take two together.
constexpr const char* kColumnsOfPairs = R"json({
  "version": 1, "name": "columns-of-pairs",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"c": {"range": [0, "inf"]}},
  "predictor": {"tile": {"q": 64, "k": 1},
    "estimate": {"q": "mean", "k": "tokens", "normalise": "softmax"}, "keep": "p > c / n_k"},
  "loader": "gather"
})json";

void make_columns_of_pairs(Variant& v, Random& random) {
  make_causal(v);
  const double c = as_f32(uniform(random, 0.5, 2));
  const int n_k = v.problem.n_k;
  v.params = {{"c", false, {c}, {}}};
  oracle::Predictor& p = compared(v, 64, 1, Compared::kMean, Compared::kTokens);
  p.uses_rank = false;
  p.keep = [=](const TileFacts& t) { return t.p > c / n_k; };
  v.tiling.tile_k = 1;
}

void make_vertical_slash(Variant& v, Random& random) {
  make_causal(v);
  const auto vertical = head_count(v, "vertical", random, 0, 100);
  const auto slash = head_count(v, "slash", random, 0, 60);
  const int shift = token_shift(v);
  oracle::Predictor& p = compared(v, 128, 1, Compared::kLast, Compared::kTokens);
  p.estimate->count = 64, p.estimate->reduction = oracle::Reduction::kSum;
  p.keep = [=](const TileFacts& t) {
    return t.rank < vertical[token_head(t)] || t.tile.k0 < 30 ||
           t.tile.q0 + shift - t.tile.k1 < slash[token_head(t)];
  };
  v.tiling.tile_k = 1;
}

}  // namespace

std::string token_spec(const std::string& name) {
  if (name == "integer-softmax") return kIntegerSoftmax;
  if (name == "integer-sums") return kIntegerSums;
  if (name == "joined-steps") return kJoinedSteps;
  if (name == "sampled-rows") return kSampledRows;
  if (name == "bands") return kBands;
  if (name == "columns-of-pairs") return kColumnsOfPairs;
  if (name == "nsa-selected") return kNsaSelected;
  return name == "uneven-cells" ? kUnevenCells : "";
}

bool make_token_variant(const std::string& name, Variant& v, KernelTile, Random& random) {
  if (name == "sale") return make_sale(v, random), true;
  if (name == "relmax") return make_relmax(v, random), true;
  if (name == "cascade") return make_cascade(v, random), true;
  if (name == "integer-softmax") return make_integer_softmax(v, random), true;
  if (name == "integer-sums") return make_integer_sums(v, random), true;
  if (name == "joined-steps") return make_joined_steps(v, random), true;
  if (name == "bands") return make_bands(v, random), true;
  if (name == "columns-of-pairs") return make_columns_of_pairs(v, random), true;
  if (name == "columns-of-scores") {
    v.problem.weighting = oracle::Weighting::kLogit;
    return make_columns_of_pairs(v, random), true;
  }
  if (name == "prism") return make_prism(v, random), true;
  if (name == "sampled-rows") return make_sampled_rows(v, random), true;
  if (name == "subblock") return make_subblock(v, random), true;
  if (name == "nsa-selected") return make_nsa_selected(v, random), true;
  if (name == "uneven-cells") return make_uneven_cells(v, random), true;
  if (name == "flashprefill") return make_flashprefill(v, random), true;
  if (name == "xattention") return make_xattention(v, random), true;
  if (name == "fg-attn-cached") return make_fg_attn(v, Compared::kTokens, random), true;
  if (name == "fg-attn-pooled") return make_fg_attn(v, Compared::kMean, random), true;
  if (name == "minference-vertical-slash") return make_vertical_slash(v, random), true;
  return false;
}

}  // namespace lacuna::numerics
