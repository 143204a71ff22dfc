#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <tuple>

#include "tests/numerics/variants/random_variant.hpp"
#include "tests/numerics/variants/variant_parts.hpp"
#include "tests/oracle/order.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna::numerics {
namespace {

/// `x`: a random normal value.
double element(Fill fill, int row, int channel, bool is_query, double x) {
  switch (fill) {
    case Fill::kNormal:
      return x;
    case Fill::kUneven:
      return !is_query && row / 64 % 2 == 0 ? 0.05 * x : x;
    case Fill::kZero:
      return 0;
    case Fill::kHuge:
      return 30 * x;
    case Fill::kNegative:
      return is_query ? std::abs(x) + 0.5 : -std::abs(x) - 0.5;
    case Fill::kIdentical:
      return std::sin(channel + 1.0) + (is_query ? 0.25 : 0.0);
    case Fill::kOutlier:
      return channel == 5 ? 10 * x : 0.1 * x;
    case Fill::kTiny:
      return row % 3 == 0 ? -0.0 : 1e-39 * x;
    case Fill::kSharp:
      return is_query ? 8 * x : x;
    case Fill::kRising:
      if (channel != 0) return x;
      return is_query ? 4.0 : 56.0 * (row / 64);
    case Fill::kClustered: {
      const int cluster = (is_query ? row / 40 : row / 24) % 7;
      return std::sin(cluster * 12.9898 + (channel + 1) * 78.233) + 0.4 * x;
    }
  }
  return x;
}

std::vector<double> make_tensor(const Case& c, int heads, int tokens, int width, bool is_query,
                                Random& random) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(c.n_b * heads) * static_cast<std::size_t>(tokens) *
              static_cast<std::size_t>(width));
  // Of float, and one for all: it draws two values at a time, and drawing was a fifth of the suite.
  std::normal_distribution<float> normal;
  for (int head = 0; head < c.n_b * heads; ++head)
    for (int row = 0; row < tokens; ++row)
      for (int channel = 0; channel < width; ++channel)
        out.push_back(round_to(c.dtype, element(c.fill, row, channel, is_query, normal(random))));
  return out;
}

/// What a seed makes of a case, and the generator behind it.
struct Drawn {
  std::vector<double> q, k, v;
  Random random;
};

/// `random`: as it was seeded. Variants of one shape have the same tensors, and making them took a
/// tenth of the suite: those of the last shapes are kept.
const Drawn& draw_tensors(const Case& c, std::uint32_t seed, const Random& random) {
  constexpr std::size_t kMostKept = 80;
  static std::map<std::tuple<DType, Fill, std::uint32_t, std::array<int, 7>>, Drawn> kept;
  const std::array<int, 7> shape = {c.n_b, c.n_h, c.n_h_kv, c.n_q, c.n_k, c.d, c.value_dim()};
  if (kept.size() > kMostKept) kept.clear();
  const auto [at, is_new] = kept.try_emplace(std::tuple(c.dtype, c.fill, seed, shape));
  Drawn& drawn = at->second;
  if (!is_new) return drawn;
  drawn.random = random;
  drawn.q = make_tensor(c, c.n_h, c.n_q, c.d, true, drawn.random);
  drawn.k = make_tensor(c, c.n_h_kv, c.n_k, c.d, false, drawn.random);
  drawn.v = make_tensor(c, c.n_h_kv, c.n_k, c.value_dim(), false, drawn.random);
  return drawn;
}

oracle::Problem make_problem(const Case& c, std::uint32_t seed, Random& random) {
  oracle::Problem p;
  p.n_b = c.n_b, p.n_h = c.n_h, p.n_h_kv = c.n_h_kv, p.n_q = c.n_q, p.n_k = c.n_k, p.d = c.d,
  p.d_v = c.d_v;
  p.scale = as_f32(1 / std::sqrt(static_cast<double>(c.d)));
  const Drawn& drawn = draw_tensors(c, seed, random);
  p.q = drawn.q, p.k = drawn.k, p.v = drawn.v;
  random = drawn.random;
  return p;
}

std::string inline_spec(const std::string& name) {
  if (name == "warp-gate")
    return R"({"version": 1, "name": "warp-gate",
  "params": {"lambda": {"shape": "scalar", "range": [-50, 0], "doc": "skip PV when row maxima trail by more"}},
  "gate": {"scope": "warp", "skip": "gap < lambda", "skips": ["pv"]},
  "tile": {"q": [128, 64], "k": 64}})";
  if (name == "lists")
    return R"({"version": 1, "name": "lists", "mask": "external",
  "attention": {"mask": "k <= q + n_k - n_q"}, "tile": {"q": [128, 64], "k": 64}})";
  if (name == "lists-descending")
    return R"({"version": 1, "name": "lists-descending", "mask": "external",
  "attention": {"mask": "k <= q + n_k - n_q"},
  "tile": {"q": [128, 64], "k": 64, "order": "descending"}})";
  if (name == "vsa-fine")
    return R"({"version": 1, "name": "vsa-fine",
  "params": {"cubes": {"type": "i32", "shape": "[heads]"}},
  "predictor": {"tile": {"q": 64, "k": 64}, "estimate": {"q": "mean", "k": "mean"},
    "keep": "rank < cubes"}})";
  if (const std::string tokens = token_spec(name); !tokens.empty()) return tokens;
  if (const std::string index = index_spec(name); !index.empty()) return index;
  if (const std::string narrow = narrow_list_spec(name); !narrow.empty()) return narrow;
  if (const std::string patterns = pattern_spec(name); !patterns.empty()) return patterns;
  if (const std::string pairs = pair_spec(name); !pairs.empty()) return pairs;
  if (const std::string distances = distance_spec(name); !distances.empty()) return distances;
  if (const std::string biases = bias_spec(name); !biases.empty()) return biases;
  return feature_spec(name);
}

}  // namespace

std::vector<double> head_param(Variant& v, const char* name, Random& random, double low,
                               double high) {
  std::vector<double> values;
  for (int h = 0; h < v.problem.n_h; ++h) values.push_back(as_f32(uniform(random, low, high)));
  v.params.push_back({name, false, values, {v.problem.n_h}});
  return values;
}

std::vector<double> head_count(Variant& v, const char* name, Random& random, int low, int high) {
  std::vector<double> values;
  for (int h = 0; h < v.problem.n_h; ++h)
    values.push_back(std::floor(uniform(random, low, high + 1)));
  v.params.push_back({name, true, values, {v.problem.n_h}});
  return values;
}

std::vector<double> add_table(Variant& v, const char* name, const std::vector<int>& shape,
                              Random& random) {
  std::vector<double> values;
  for (int x = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()); x > 0; --x)
    values.push_back(as_f32(uniform(random, -2, 2)));
  v.params.push_back({name, false, values, {shape.begin(), shape.end()}});
  return values;
}

void keep_window_of_tiles(Variant& v, Random& random) {
  const auto window = head_count(v, "window", random, -100, 300);
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = v.predictor->tile_k = 128;
  v.predictor->uses_rank = false;
  v.predictor->keep = [=](const oracle::TileFacts& t) {
    return t.tile.j == 0 || t.tile.q0 - t.tile.k1 < window[static_cast<std::size_t>(t.tile.h)];
  };
}

void make_causal(Variant& v) {
  const int shift = v.problem.n_k - v.problem.n_q;
  v.problem.mask = [shift](int q, int k, int, int) { return k <= q + shift; };
}

oracle::GateRule gap_gate(std::function<double(const oracle::TileIndex&)> limit,
                          std::function<bool(const oracle::TileIndex&)> exempt) {
  const auto is_exempt = [exempt](const oracle::TileIndex& t) { return exempt && exempt(t); };
  oracle::GateRule gate;
  gate.skip = [=](double, double gap, const oracle::TileIndex& t) {
    return !is_exempt(t) && gap < limit(t);
  };
  gate.margin = [=](double, double gap, const oracle::TileIndex& t) {
    return is_exempt(t) || std::isinf(gap) ? kInfinity : std::abs(gap - limit(t));
  };
  return gate;
}

oracle::GateRule tile_max_gate(std::function<double(const oracle::TileIndex&)> limit,
                               std::function<bool(const oracle::TileIndex&)> exempt) {
  const auto is_exempt = [exempt](const oracle::TileIndex& t) { return exempt && exempt(t); };
  oracle::GateRule gate;
  gate.skip = [=](double tile_max, double, const oracle::TileIndex& t) {
    return !is_exempt(t) && tile_max < limit(t);
  };
  gate.margin = [=](double tile_max, double, const oracle::TileIndex& t) {
    return is_exempt(t) || tile_max == -kInfinity ? kInfinity : std::abs(tile_max - limit(t));
  };
  return gate;
}

std::string name_of(DType dtype) {
  return dtype == DType::kBF16 ? "bf16" : dtype == DType::kF16 ? "f16" : "f32";
}

std::string name_of(Fill fill) {
  static const char* const kNames[] = {"normal",   "uneven",    "zero",     "huge",
                                       "negative", "identical", "outlier",  "tiny",
                                       "sharp",    "rising",    "clustered"};
  return kNames[static_cast<int>(fill)];
}

std::string Case::text() const {
  std::ostringstream out;
  out << variant << "_" << name_of(dtype) << "_d" << d
      << (d_v > 0 && d_v != d ? "v" + std::to_string(d_v) : "") << "_b" << n_b << "_h" << n_h << "_"
      << n_h_kv << "_n" << n_q << "_" << n_k << "_" << name_of(fill)
      << (token_major ? "_token_major" : "");
  std::string name = out.str();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.text(); }

const std::vector<std::string>& variant_names() {
  static const std::vector<std::string> names = {"dense",
                                                 "window",
                                                 "sink",
                                                 "row-sink",
                                                 "sigmoid",
                                                 "hstu",
                                                 "relu-squared",
                                                 "retention",
                                                 "split-scores",
                                                 "linear-dilated",
                                                 "int8-linear",
                                                 "int8-sink",
                                                 "document",
                                                 "softcap",
                                                 "softcap-reading",
                                                 "alibi",
                                                 "distance-table",
                                                 "bsfa",
                                                 "skip-softmax",
                                                 "distance-gate",
                                                 "warp-gate",
                                                 "lists",
                                                 "external-mask",
                                                 "flash-decoding",
                                                 "prefix-lm",
                                                 "longformer",
                                                 "natten",
                                                 "t5-bias",
                                                 "tree",
                                                 "pair-bias",
                                                 "values",
                                                 "documents",
                                                 "pair-mask",
                                                 "pair-gate",
                                                 "dilated",
                                                 "int8-dilated",
                                                 "dilated-gate",
                                                 "kept-distances",
                                                 "strided-pattern",
                                                 "chunks",
                                                 "chunks-before",
                                                 "int8-tile-gate",
                                                 "int8-gap-or-max",
                                                 "int8-closing-gate",
                                                 "slanted-table",
                                                 "pair-table",
                                                 "image-bias",
                                                 "bucket-bias",
                                                 "bucket-bias-mma",
                                                 "fire-bias",
                                                 "long-formulas",
                                                 "taylor-weights"};
  return names;
}

const std::vector<std::string>& predicted_names() {
  static const std::vector<std::string> names = {
      "sparge",         "sparge-topk",    "sparge-video",     "similar-mass",
      "dilated-union",  "topk-blocks",    "minference-block", "flexprefill",
      "moba-blocks",    "streaming",      "seer-attention",   "quest",
      "sampled-rows",   "bands",          "columns-of-pairs", "radial",
      "sliding-tile",   "bigbird",        "relmax",           "flashprefill",
      "subblock",       "uneven-cells",   "cascade",          "integer-softmax",
      "integer-sums",   "joined-steps",   "twilight",         "deepseek-indexer",
      "index-tiles",    "index-rows",     "latent-index",     "xattention",
      "sale",           "fg-attn-cached", "fg-attn-pooled",   "minference-vertical-slash",
      "pair-lists",     "strided-lists",  "columns-previous", "columns-pooled",
      "shared-heads",   "score-rule",     "long-columns",     "columns-of-scores",
      "neighbour-tiles"};
  return names;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names = variant_names();
  names.insert(names.end(), predicted_names().begin(), predicted_names().end());
  return names;
}

std::vector<Case> value_cases(const std::vector<std::string>& variants) {
  std::vector<Case> cases;
  for (const std::string& variant : variants)
    for (const Fill fill :
         {Fill::kNormal, Fill::kZero, Fill::kHuge, Fill::kNegative, Fill::kIdentical,
          Fill::kOutlier, Fill::kTiny, Fill::kSharp, Fill::kRising})
      cases.push_back({variant, DType::kBF16, 64, 1, 2, 1, 200, 200, fill, false});
  return cases;
}

bool is_quantised(const std::string& variant) {
  return variant.starts_with("sparge") || variant.starts_with("int8") || variant == "sale" ||
         variant == "similar-mass" || variant == "shared-heads";
}

oracle::Problem ordered_problem(const Variant& variant) {
  return variant.order.empty() ? variant.problem
                               : oracle::permuted_problem(variant.problem, variant.order);
}

oracle::Problem computed_problem(const Variant& variant) {
  return oracle::quantised_problem(ordered_problem(variant), variant.quantisation);
}

std::string source_dir() {
  const char* moved = std::getenv("LACUNA_TEST_SOURCE_DIR");
  return moved ? moved : LACUNA_SOURCE_DIR;
}

std::string spec_text(const Case& c) {
  if (is_random_name(c.variant)) return random_spec(c.variant)->document.source.text;
  const std::string text = inline_spec(c.variant);
  if (!text.empty()) return text;
  const std::string shipped = test::read_file(source_dir() + "/specs/" + c.variant + ".json");
  if (!shipped.empty()) return shipped;
  const std::string example =
      test::read_file(source_dir() + "/specs/examples/" + c.variant + ".json");
  return example.empty()
             ? test::read_file(source_dir() + "/tests/device/specs/" + c.variant + ".json")
             : example;
}

double round_to(DType dtype, double x) {
  const auto f = static_cast<float>(x);
  if (dtype == DType::kF32) return static_cast<double>(f);
  if (dtype == DType::kF16) return static_cast<double>(static_cast<_Float16>(f));
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::isnan(f)) return x;
  bits += 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<double>(std::bit_cast<float>(bits & 0xffff0000U));
}

namespace {

Variant make_variant_of(const Case& c, const KernelTile& tile, std::uint32_t seed, Random& inputs,
                        Random& random, std::uint32_t params_seed) {
  Variant v;
  v.spec_json = spec_text(c);
  v.dtype = c.dtype;
  v.problem = make_problem(c, seed, inputs);
  v.tiling.tile_q = tile.q, v.tiling.tile_k = tile.k, v.tiling.warp_rows = tile.gate_rows;
  v.tiling.step_tiles = tile.step_tiles;
  v.quantisation.tile_q = tile.q, v.quantisation.tile_k = tile.k;
  if (is_random_name(c.variant)) return make_random_variant(c, tile, params_seed, v), v;
  const bool known = make_attend_variant(c.variant, v, tile, random) ||
                     make_narrow_list_variant(c.variant, v, tile, random) ||
                     make_pooled_variant(c.variant, v, tile, random) ||
                     make_token_variant(c.variant, v, tile, random) ||
                     make_index_variant(c.variant, v, tile, random) ||
                     make_pattern_variant(c.variant, v, tile, random) ||
                     make_pairs_variant(c.variant, v, random) ||
                     make_distance_variant(c.variant, v, random) ||
                     make_weights_variant(c.variant, v, random) ||
                     make_feature_variant(c.variant, v, tile, random) ||
                     make_bias_variant(c.variant, v, tile, random);
  if (!known) std::abort();  // a test names a variant without a twin
  return v;
}

}  // namespace

Variant make_variant(const Case& c, const KernelTile& tile, std::uint32_t seed) {
  Random random(seed);
  return make_variant_of(c, tile, seed, random, random, seed);
}

Variant make_variant(const Case& c, const KernelTile& tile, std::uint32_t seed,
                     std::uint32_t params_seed) {
  Random inputs(seed), random(params_seed);
  return make_variant_of(c, tile, seed, inputs, random, params_seed);
}

}  // namespace lacuna::numerics
