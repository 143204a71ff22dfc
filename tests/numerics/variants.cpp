#include "tests/numerics/variants.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

namespace lacuna::numerics {
namespace {

using oracle::TileIndex;
using Random = std::mt19937;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

/// The float a parameter becomes on its way into the kernel.
double as_f32(double x) { return static_cast<double>(static_cast<float>(x)); }

std::size_t at(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

// ---- inputs
// ---------------------------------------------------------------------------------------------

double element(Fill fill, int row, int channel, bool is_query, Random& random) {
  const double x = std::normal_distribution<double>()(random);
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
  }
  return x;
}

std::vector<double> make_tensor(const Case& c, int heads, int tokens, bool is_query,
                                Random& random) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(c.n_b * heads) * static_cast<std::size_t>(tokens) *
              static_cast<std::size_t>(c.d));
  for (int head = 0; head < c.n_b * heads; ++head)
    for (int row = 0; row < tokens; ++row)
      for (int channel = 0; channel < c.d; ++channel)
        out.push_back(round_to(c.dtype, element(c.fill, row, channel, is_query, random)));
  return out;
}

oracle::Problem make_problem(const Case& c, Random& random) {
  oracle::Problem p;
  p.n_b = c.n_b, p.n_h = c.n_h, p.n_h_kv = c.n_h_kv, p.n_q = c.n_q, p.n_k = c.n_k, p.d = c.d;
  p.scale = as_f32(1 / std::sqrt(static_cast<double>(c.d)));
  p.q = make_tensor(c, c.n_h, c.n_q, true, random);
  p.k = make_tensor(c, c.n_h_kv, c.n_k, false, random);
  p.v = make_tensor(c, c.n_h_kv, c.n_k, false, random);
  return p;
}

// ---- variants
// -------------------------------------------------------------------------------------------

/// Bottom-right causal: the last query sees the last key.
void make_causal(Variant& v) {
  const int shift = v.problem.n_k - v.problem.n_q;
  v.problem.mask = [shift](int q, int k, int, int) { return k <= q + shift; };
}

void make_window(Variant& v, Random& random) {
  const double sink = std::floor(uniform(random, 0, 40)),
               window = std::floor(uniform(random, 1, 200));
  const int shift = v.problem.n_k - v.problem.n_q;
  v.params = {{"sink", true, {sink}, {}}, {"window", true, {window}, {}}};
  v.problem.mask = [=](int q, int k, int, int) {
    return k <= q + shift && (k < sink || q + shift - k < window);
  };
}

void make_document(Variant& v, Random& random) {
  const int n_q = v.problem.n_q, shift = v.problem.n_k - n_q;
  std::vector<double> start;
  double begin = 0;
  for (int q = 0; q < n_q; ++q) {
    if (uniform(random, 0, 1) < 0.02) begin = std::max(0, q + shift);
    start.push_back(begin);
  }
  v.params = {{"start", true, start, {n_q}}};
  v.problem.mask = [=](int q, int k, int, int) {
    return k <= q + shift && k >= start[static_cast<std::size_t>(q)];
  };
}

void make_softcap(Variant& v, Random& random) {
  make_causal(v);
  const double cap = as_f32(uniform(random, 0.5, 30));
  v.params = {{"cap", false, {cap}, {}}};
  v.problem.score = [=](double s, int, int, int, int) { return cap * std::tanh(s / cap); };
}

void make_alibi(Variant& v, Random& random) {
  make_causal(v);
  const int shift = v.problem.n_k - v.problem.n_q;
  std::vector<double> slope;
  for (int h = 0; h < v.problem.n_h; ++h) slope.push_back(as_f32(uniform(random, 0.001, 0.5)));
  v.params = {{"slope", false, slope, {v.problem.n_h}}};
  v.problem.score = [=](double s, int q, int k, int h, int) {
    return s - slope[static_cast<std::size_t>(h)] * (q + shift - k);
  };
}

void make_bsfa(Variant& v, int tile_q, Random& random) {
  make_causal(v);
  const int q_tiles = (v.problem.n_q + tile_q - 1) / tile_q, shift = v.problem.n_k - v.problem.n_q;
  std::vector<double> threshold;
  for (int x = 0; x < v.problem.n_h * q_tiles; ++x)
    threshold.push_back(as_f32(uniform(random, 1, 4.5)));
  v.params = {{"threshold", false, threshold, {v.problem.n_h, q_tiles}}};
  v.tiling.descending = true;
  oracle::GateRule gate;
  gate.skips_exp = true;
  const auto limit = [=](const TileIndex& t) { return threshold[at(t.h, q_tiles, t.i)]; };
  const auto exempt = [=](const TileIndex& t) { return t.k1 >= t.q0 + shift; };
  gate.skip = [=](double tile_max, double, const TileIndex& t) {
    return !exempt(t) && tile_max < limit(t);
  };
  gate.margin = [=](double tile_max, double, const TileIndex& t) {
    return exempt(t) || tile_max == -kInfinity ? kInfinity : std::abs(tile_max - limit(t));
  };
  v.gate = gate;
}

void make_skip_softmax(Variant& v, Random& random) {
  make_causal(v);
  const double c = as_f32(v.problem.n_k * std::exp(uniform(random, -1.5, 0.0)));
  v.params = {{"c", false, {c}, {}}};
  const double limit = std::log(c / v.problem.n_k);
  oracle::GateRule gate;
  gate.skips_exp = true;
  gate.skip = [=](double, double gap, const TileIndex&) { return gap < limit; };
  gate.margin = [=](double, double gap, const TileIndex&) {
    return std::isinf(gap) ? kInfinity : std::abs(gap - limit);
  };
  v.gate = gate;
}

/// A gate no shipped spec has: warps of 16 rows decide alone, and only the product with V is left
/// out.
void make_warp_gate(Variant& v, Random& random) {
  const double limit = as_f32(uniform(random, -3, -0.5));
  v.params = {{"lambda", false, {limit}, {}}};
  oracle::GateRule gate;
  gate.scope = oracle::Scope::kWarp;
  gate.skip = [=](double, double gap, const TileIndex&) { return gap < limit; };
  gate.margin = [=](double, double gap, const TileIndex&) {
    return std::isinf(gap) ? kInfinity : std::abs(gap - limit);
  };
  v.gate = gate;
}

/// Random block lists under a causal mask; empty rows included.
void make_lists(Variant& v, int tile_q, int tile_k, Random& random) {
  make_causal(v);
  const oracle::Problem& p = v.problem;
  const int q_tiles = (p.n_q + tile_q - 1) / tile_q, k_tiles = (p.n_k + tile_k - 1) / tile_k;
  for (int x = 0; x < p.n_b * p.n_h * q_tiles; ++x) {
    const double density = uniform(random, -0.2, 1.2);
    for (int j = 0; j < k_tiles; ++j)
      v.tiling.listed.push_back(uniform(random, 0, 1) < density ? 1 : 0);
  }
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string inline_spec(const std::string& name) {
  if (name == "warp-gate")
    return R"({"version": 1, "name": "warp-gate",
  "params": {"lambda": {"shape": "scalar", "range": [-50, 0], "doc": "skip PV when row maxima trail by more"}},
  "gate": {"scope": "warp", "skip": "gap < lambda", "skips": ["pv"]},
  "tile": {"q": 64, "k": 64}})";
  if (name == "lists")
    return R"({"version": 1, "name": "lists", "mask": "external",
  "attention": {"mask": "k <= q + n_k - n_q"}, "tile": {"q": 64, "k": 64}})";
  return "";
}

}  // namespace

std::string name_of(DType dtype) {
  return dtype == DType::kBF16 ? "bf16" : dtype == DType::kF16 ? "f16" : "f32";
}

std::string name_of(Fill fill) {
  static const char* const kNames[] = {"normal",   "uneven",    "zero",    "huge",
                                       "negative", "identical", "outlier", "tiny"};
  return kNames[static_cast<int>(fill)];
}

std::string Case::text() const {
  std::ostringstream out;
  out << variant << "_" << name_of(dtype) << "_d" << d << "_b" << n_b << "_h" << n_h << "_"
      << n_h_kv << "_n" << n_q << "_" << n_k << "_" << name_of(fill)
      << (token_major ? "_token_major" : "");
  std::string name = out.str();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

const std::vector<std::string>& variant_names() {
  static const std::vector<std::string> names = {"dense",        "window",    "document",
                                                 "softcap",      "alibi",     "bsfa",
                                                 "skip-softmax", "warp-gate", "lists"};
  return names;
}

std::string source_dir() {
  const char* moved = std::getenv("LACUNA_TEST_SOURCE_DIR");
  return moved ? moved : LACUNA_SOURCE_DIR;
}

std::string spec_text(const Case& c) {
  const std::string text = inline_spec(c.variant);
  return text.empty() ? read_file(source_dir() + "/specs/" + c.variant + ".json") : text;
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

Variant make_variant(const Case& c, int tile_q, int tile_k, std::uint32_t seed) {
  Random random(seed);
  Variant v;
  v.spec_json = spec_text(c);
  v.problem = make_problem(c, random);
  v.tiling.tile_q = tile_q, v.tiling.tile_k = tile_k;
  if (c.variant == "window") make_window(v, random);
  if (c.variant == "document") make_document(v, random);
  if (c.variant == "softcap") make_softcap(v, random);
  if (c.variant == "alibi") make_alibi(v, random);
  if (c.variant == "bsfa") make_bsfa(v, tile_q, random);
  if (c.variant == "skip-softmax") make_skip_softmax(v, random);
  if (c.variant == "warp-gate") make_warp_gate(v, random);
  if (c.variant == "lists") make_lists(v, tile_q, tile_k, random);
  return v;
}

}  // namespace lacuna::numerics
