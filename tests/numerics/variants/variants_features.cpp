// Variants that no shipped spec has: pieces of the language that would otherwise go unused, each in
// a spec of its own.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

using oracle::Compared;
using oracle::TileFacts;

std::size_t head_of(const TileFacts& t) { return static_cast<std::size_t>(t.tile.h); }

constexpr const char* kColumnsPrevious = R"({"version": 1, "name": "columns-previous",
  "params": {"c": {"range": [0, "inf"], "doc": "columns above c / n_j of the mass are kept"}},
  "predictor": {"tile": {"q": 64, "k": 8},
    "estimate": {"q": "tokens", "k": "tokens", "bits": 16, "reduce": "sum", "normalise": "previous_lse"},
    "keep": "p > c / n_j", "reuse": 3},
  "loader": "gather"})";

/// Columns of 8 keys, weighed by the LSE of an earlier call.
void make_columns_previous(Variant& v, Random& random) {
  const double c = as_f32(uniform(random, 0.3, 1.5));
  v.params = {{"c", false, {c}, {}}};
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = 64, v.predictor->tile_k = v.tiling.tile_k = 8;
  v.predictor->uses_rank = false;
  oracle::EstimateRule rule;
  rule.rows = rule.columns = Compared::kTokens, rule.bits = 16;
  rule.reduction = oracle::Reduction::kSum, rule.norm = oracle::Norm::kPrevious;
  for (const double lse : oracle::oracle_dense(v.problem).lse)
    rule.previous_lse.push_back(as_f32(lse + uniform(random, -0.2, 0.2)));
  rule.previous_lse[0] = -kInfinity;  // a row that saw nothing has no say
  v.predictor->estimate = rule;
  v.predictor->keep = [=](const TileFacts& t) { return t.p > c / t.n_j; };
  v.reuse = 3;
}

constexpr const char* kColumnsPooled = R"({"version": 1, "name": "columns-pooled",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"ratio": {"shape": "[heads]", "range": [0, 1], "doc": "of visible columns"},
             "theta": {"range": [-1, 1], "doc": "columns less alike are kept"}},
  "predictor": {"tile": {"q": 64, "k": 16}, "similarity": "gram_max",
    "estimate": {"q": "mean", "k": "mean", "normalise": "softmax"},
    "keep": "rank < ratio * visible or similar_k < theta"},
  "loader": "gather"})";

/// Columns of 16 keys by their means, and those whose Gram matrix is uneven.
void make_columns_pooled(Variant& v, Random& random) {
  make_causal(v);
  const auto ratio = head_param(v, "ratio", random, 0, 0.6);
  const double theta = as_f32(uniform(random, 0.2, 0.6));
  v.params.push_back({"theta", false, {theta}, {}});
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = 64, v.predictor->tile_k = v.tiling.tile_k = 16;
  v.predictor->similarity = oracle::Similarity::kGramMax;
  v.predictor->uses_similarity = true;
  v.predictor->estimate = oracle::EstimateRule{};
  v.predictor->keep = [=](const TileFacts& t) {
    return t.rank < ratio[head_of(t)] * t.visible || t.similar_k < theta;
  };
}

constexpr const char* kSharedHeads = R"({"version": 1, "name": "shared-heads",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"tau": {"shape": "[heads]", "range": [0, 1], "doc": "share of the mass"}},
  "predictor": {"tile": {"q": 64, "k": 64}, "smooth": ["q", "k"], "heads": "shared",
    "estimate": {"q": "tokens", "k": "tokens", "bits": 8, "group": "thread", "reduce": "sum",
                 "normalise": "softmax"},
    "keep": "mass_before < tau"},
  "quantise": {"qk": {"bits": 8, "group": "warp"}, "v": {"bits": 8, "range": 2.25}},
  "tile": {"q": 64, "k": 32}})";

/// Query heads of a KV head unite their tiles; int8 estimates, groups of warps, a small V range,
/// tiles of attend that halve those of the predictor.
void make_shared_heads(Variant& v, Random& random) {
  make_causal(v);
  const auto tau = head_param(v, "tau", random, 0.2, 0.7);
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = v.predictor->tile_k = 64;
  v.predictor->smooth_q = v.predictor->smooth_k = v.predictor->shared_heads = true;
  oracle::EstimateRule rule;
  rule.rows = rule.columns = Compared::kTokens, rule.bits = 8;
  rule.reduction = oracle::Reduction::kSum;
  v.predictor->estimate = rule;
  v.predictor->keep = [=](const TileFacts& t) { return t.mass_before < tau[head_of(t)]; };
  v.quantisation.qk_bits = v.quantisation.v_bits = 8, v.quantisation.group = oracle::Group::kWarp;
  v.quantisation.smooth_q = v.quantisation.smooth_k = true, v.quantisation.range = 2.25;
}

constexpr const char* kScoreRule = R"({"version": 1, "name": "score-rule",
  "attention": {"mask": "k <= q + n_k - n_q", "scale": 0.1},
  "params": {"least": {"shape": "[heads]", "doc": "largest logit that a tile must reach"}},
  "predictor": {"tile": {"q": 32, "k": 32},
    "estimate": {"q": "tokens", "k": "tokens", "normalise": "none"},
    "keep": "score >= least or j == i"},
  "tile": {"q": 32, "k": 32, "order": "descending"}})";

/// A threshold on the logits themselves.
void make_score_rule(Variant& v, Random& random) {
  make_causal(v);
  v.problem.scale = as_f32(0.1);
  const auto least = head_param(v, "least", random, 0.5, 6);
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = v.predictor->tile_k = 32, v.predictor->uses_rank = false;
  v.predictor->estimate = oracle::EstimateRule{};
  v.predictor->estimate->rows = v.predictor->estimate->columns = Compared::kTokens;
  v.predictor->estimate->bits = 16, v.predictor->estimate->norm = oracle::Norm::kNone;
  v.predictor->keep = [=](const TileFacts& t) {
    return t.score >= least[head_of(t)] || t.tile.i == t.tile.j;
  };
  v.tiling.descending = true;
}

constexpr const char* kFirstColumns = R"({"version": 1, "name": "first-columns",
  "params": {"columns": {"type": "i32", "shape": "[heads]", "range": [0, "inf"], "doc": "as many are kept"}},
  "predictor": {"tile": {"q": 128, "k": 1}, "keep": "j < columns"},
  "loader": "gather"})";

/// Gathers as many keys as a parameter says.
void make_first_columns(Variant& v, Random& random) {
  const auto columns = head_count(v, "columns", random, 0, 300);
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = 128, v.predictor->tile_k = v.tiling.tile_k = 1;
  v.predictor->uses_rank = false;
  v.predictor->keep = [=](const TileFacts& t) { return t.tile.j < columns[head_of(t)]; };
}

constexpr const char* kInt8TileGate = R"({"version": 1, "name": "int8-tile-gate",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"least": {"shape": "[heads]", "unit": "logits", "doc": "a tile's largest logit has to reach it"}},
  "gate": {"scope": "tile", "skip": "tile_max < least", "skips": ["pv"]},
  "quantise": {"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}},
  "tile": {"q": [128, 64], "k": [64, 32]}})";

/// All rows of a tile decide together, late, as only the product with V is left out.
void make_int8_tile_gate(Variant& v, Random& random) {
  make_causal(v);
  const auto least = head_param(v, "least", random, 0.5, 4);
  v.gate = tile_max_gate(
      [=](const oracle::TileIndex& t) { return least[static_cast<std::size_t>(t.h)]; }, {});
  v.quantisation.qk_bits = v.quantisation.v_bits = 8;
}

constexpr const char* kInt8GapOrMax = R"({"version": 1, "name": "int8-gap-or-max",
  "params": {"lambda": {"range": [-50, 0], "doc": "skip what trails by more"},
             "least": {"unit": "logits", "doc": "skip what stays below"}},
  "gate": {"scope": "warp", "skip": "gap < lambda or tile_max < least", "skips": ["pv"]},
  "quantise": {"qk": {"bits": 8, "group": "warp"}, "v": {"bits": 8}},
  "tile": {"q": [128, 64], "k": 64, "stages": 3}})";

/// Both statistics at a time, so that no lane decides alone; and rings of three places.
void make_int8_gap_or_max(Variant& v, Random& random) {
  const double lambda = as_f32(uniform(random, -3, -0.5)), least = as_f32(uniform(random, 0.5, 2));
  v.params = {{"lambda", false, {lambda}, {}}, {"least", false, {least}, {}}};
  const auto by_gap = gap_gate([lambda](const oracle::TileIndex&) { return lambda; }, {});
  const auto by_max = tile_max_gate([least](const oracle::TileIndex&) { return least; }, {});
  oracle::GateRule gate;
  gate.scope = oracle::Scope::kWarp;
  gate.skip = [=](double tile_max, double gap, const oracle::TileIndex& t) {
    return by_gap.skip(tile_max, gap, t) || by_max.skip(tile_max, gap, t);
  };
  gate.margin = [=](double tile_max, double gap, const oracle::TileIndex& t) {
    return std::min(by_gap.margin(tile_max, gap, t), by_max.margin(tile_max, gap, t));
  };
  v.gate = gate;
  v.quantisation.qk_bits = v.quantisation.v_bits = 8;
  v.quantisation.group = oracle::Group::kWarp;
}

constexpr const char* kInt8ClosingGate = R"({"version": 1, "name": "int8-closing-gate",
  "params": {"most": {"unit": "logits", "doc": "skip what reaches more"}},
  "gate": {"scope": "warp", "skip": "tile_max > most", "skips": ["pv"]},
  "quantise": {"qk": {"bits": 8, "group": "block"}},
  "tile": {"q": [128, 64], "k": 64}})";

/// Closes as its statistic grows: what one lane has seen of a tile does not decide. What is left
/// weighs little, too little for values of 8 bits.
void make_int8_closing_gate(Variant& v, Random& random) {
  const double most = as_f32(uniform(random, 0.5, 2));
  v.params = {{"most", false, {most}, {}}};
  oracle::GateRule gate = tile_max_gate([most](const oracle::TileIndex&) { return most; }, {});
  gate.scope = oracle::Scope::kWarp;
  gate.skip = [most](double tile_max, double, const oracle::TileIndex&) { return tile_max > most; };
  v.gate = gate;
  v.quantisation.qk_bits = 8;
}

constexpr const char* kRowSink = R"({"version": 1, "name": "row-sink",
  "attention": {"mask": "k + 20 <= q + n_k - n_q", "sink": "level[q] - 0.5 * h", "lse_base": "2"},
  "params": {"level": {"shape": "[n_q]", "doc": "what a query's own logit is for head 0"}}})";
constexpr const char* kInt8Sink = R"({"version": 1, "name": "int8-sink",
  "attention": {"mask": "k + 20 <= q + n_k - n_q", "sink": "level[q] - 0.5 * h"},
  "params": {"level": {"shape": "[n_q]", "doc": "what a query's own logit is for head 0"}},
  "quantise": {"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}},
  "tile": {"q": [128, 64], "k": [64, 32]}})";

/// Each row has a logit of its own, from far below those of keys to far above; some have no key.
void make_row_sink(Variant& v, Random& random) {
  const int shift = v.problem.n_k - v.problem.n_q;
  std::vector<double> level;
  for (int q = 0; q < v.problem.n_q; ++q)
    level.push_back(q % 7 == 3 ? -kInfinity : as_f32(uniform(random, -10, q % 5 == 4 ? 200 : 8)));
  v.params = {{"level", false, level, {v.problem.n_q}}};
  v.problem.mask = [=](int q, int k, int, int) { return k + 20 <= q + shift; };
  v.problem.sink = [=](int q, int h, int) { return level[static_cast<std::size_t>(q)] - 0.5 * h; };
}

constexpr const char* kLongTiles = R"({"version": 1, "name": "long-tiles",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "params": {"window": {"type": "i32", "shape": "[heads]", "doc": "keys before a tile's first query"}},
  "predictor": {"tile": {"q": 512, "k": 64},
    "keep": "k0 < 64 or q0 + n_k - n_q - k1 < window"}})";

/// Tokens in another order, of which formulas see the caller's.
constexpr const char* kOrderedTokens = R"({"version": 1, "name": "ordered-tokens",
  "permute": "external",
  "attention": {"mask": "k <= q and q - k < window", "score": "s - slope * (q - k) + bias[k]",
                "sink": "level[q]"},
  "params": {"window": {"type": "i32", "shape": "[heads]"}, "slope": {"shape": "[heads]"},
             "bias": {"shape": "[n_k]"}, "level": {"shape": "[n_q]"}}})";

void make_ordered_tokens(Variant& v, Random& random) {
  const auto at = [](const std::vector<double>& x, int n) {
    return x[static_cast<std::size_t>(n)];
  };
  const auto window = head_count(v, "window", random, 1, 90);
  const auto slope = head_param(v, "slope", random, 0.01, 0.1);
  const auto bias = add_table(v, "bias", {v.problem.n_k}, random);
  const auto level = add_table(v, "level", {v.problem.n_q}, random);
  v.problem.mask = [=](int q, int k, int h, int) { return k <= q && q - k < at(window, h); };
  v.problem.score = [=](double s, int q, int k, int h, int) {
    return s - at(slope, h) * (q - k) + at(bias, k);
  };
  v.problem.sink = [=](int q, int, int) { return at(level, q); };
  v.order.resize(static_cast<std::size_t>(v.problem.n_q));
  std::iota(v.order.begin(), v.order.end(), 0);
  std::shuffle(v.order.begin(), v.order.end(), random);
}

constexpr const char* kOrderedWindow = R"spec({"version": 1, "name": "ordered-window",
  "permute": "external",
  "attention": {"mask": "k <= q and q - k < window", "score": "s - slope * (q - k)"},
  "params": {"window": {"type": "i32", "shape": "[heads]"}, "slope": {"shape": "[heads]"}}})spec";

/// The same without parameters of tokens, for sequences: there no kernel asks pairs first.
void make_ordered_window(Variant& v, Random& random) {
  const auto window = head_count(v, "window", random, 1, 90);
  const auto slope = head_param(v, "slope", random, 0.01, 0.1);
  v.problem.mask = [=](int q, int k, int h, int) {
    return k <= q && q - k < window[static_cast<std::size_t>(h)];
  };
  v.problem.score = [=](double s, int q, int k, int h, int) {
    return s - slope[static_cast<std::size_t>(h)] * (q - k);
  };
  v.has_loose_bounds = true;
  v.order.resize(static_cast<std::size_t>(v.problem.n_q));
  std::iota(v.order.begin(), v.order.end(), 0);
  std::shuffle(v.order.begin(), v.order.end(), random);
}

constexpr const char* kVOfK = R"({"version": 1, "name": "v-of-k",
  "attention": {"mask": "k <= q + n_k - n_q", "v": "k"}})";

}  // namespace

void make_v_of_k(Variant& v) {
  make_causal(v);
  v.v_of_k = true;
  oracle::Problem& p = v.problem;
  const auto d = static_cast<std::size_t>(p.d), d_v = static_cast<std::size_t>(p.value_dim());
  for (std::size_t x = 0; x < p.v.size(); ++x) p.v[x] = p.k[x / d_v * d + x % d_v];
}

std::string feature_spec(const std::string& name) {
  if (name == "columns-previous") return kColumnsPrevious;
  if (name == "columns-pooled") return kColumnsPooled;
  if (name == "shared-heads") return kSharedHeads;
  if (name == "score-rule") return kScoreRule;
  if (name == "first-columns") return kFirstColumns;
  if (name == "row-sink") return kRowSink;
  if (name == "v-of-k") return kVOfK;
  if (name == "ordered-tokens") return kOrderedTokens;
  if (name == "ordered-window") return kOrderedWindow;
  if (name == "long-tiles") return kLongTiles;
  if (name == "int8-sink") return kInt8Sink;
  if (name == "int8-tile-gate") return kInt8TileGate;
  if (name == "int8-gap-or-max") return kInt8GapOrMax;
  if (name == "int8-closing-gate") return kInt8ClosingGate;
  return "";
}

bool make_feature_variant(const std::string& name, Variant& v, KernelTile, Random& random) {
  if (name == "columns-previous") return make_columns_previous(v, random), true;
  if (name == "columns-pooled") return make_columns_pooled(v, random), true;
  if (name == "shared-heads") return make_shared_heads(v, random), true;
  if (name == "score-rule") return make_score_rule(v, random), true;
  if (name == "first-columns") return make_first_columns(v, random), true;
  if (name == "v-of-k") return make_v_of_k(v), true;
  if (name == "ordered-tokens") return make_ordered_tokens(v, random), true;
  if (name == "ordered-window") return make_ordered_window(v, random), true;
  if (name == "row-sink") {
    v.problem.lse_is_base_2 = true;
    return make_row_sink(v, random), true;
  }
  if (name == "int8-sink") {
    v.quantisation.qk_bits = v.quantisation.v_bits = 8;
    return make_row_sink(v, random), true;
  }
  if (name == "int8-tile-gate") return make_int8_tile_gate(v, random), true;
  if (name == "int8-gap-or-max") return make_int8_gap_or_max(v, random), true;
  if (name == "int8-closing-gate") return make_int8_closing_gate(v, random), true;
  return false;
}

}  // namespace lacuna::numerics
