// Variants without a predictor: masks, score functions, gates and lists.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

using oracle::TileIndex;

void make_window(Variant& v, Random& random) {
  const double sink = std::floor(uniform(random, 0, 40)),
               window = std::floor(uniform(random, 1, 200));
  const int shift = v.problem.n_k - v.problem.n_q;
  v.params = {{"sink", true, {sink}, {}}, {"window", true, {window}, {}}};
  v.problem.mask = [=](int q, int k, int, int) {
    return k <= q + shift && (k < sink || q + shift - k < window);
  };
}

void make_sigmoid(Variant& v, Random& random) {
  const auto bias = head_param(v, "bias", random, -6, 0);
  make_causal(v);
  v.problem.weighting = oracle::Weighting::kSigmoid;
  v.problem.score = [=](double s, int, int, int h, int) {
    return s + bias[static_cast<std::size_t>(h)];
  };
}

void make_sink(Variant& v, Random& random) {
  const auto sink = head_param(v, "sink", random, -2, 5);
  const double window = std::floor(uniform(random, 1, 200));
  const int shift = v.problem.n_k - v.problem.n_q;
  v.params.push_back({"window", true, {window}, {}});
  v.problem.mask = [=](int q, int k, int, int) { return k <= q + shift && q + shift - k < window; };
  v.problem.sink = [=](int, int h, int) { return sink[static_cast<std::size_t>(h)]; };
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
  for (int h = 0; h < v.problem.n_h; ++h) slope.push_back(as_f32(uniform(random, 0.001, 1.2)));
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
  v.gate = tile_max_gate(
      [=](const TileIndex& t) { return threshold[static_cast<std::size_t>(t.h * q_tiles + t.i)]; },
      [=](const TileIndex& t) { return t.k1 >= t.q0 + shift; });
  v.gate->skips_exp = true;
}

void make_skip_softmax(Variant& v, Random& random) {
  make_causal(v);
  const double c = as_f32(v.problem.n_k * std::exp(uniform(random, -1.5, 0.0)));
  v.params = {{"c", false, {c}, {}}};
  const double limit = std::log(c / v.problem.n_k);
  v.gate = gap_gate([limit](const TileIndex&) { return limit; }, {});
  v.gate->skips_exp = true;
  v.tiling.descending = true;
}

/// A gate no shipped spec has: warps of 16 rows decide alone, and only the product with V is left
/// out.
void make_warp_gate(Variant& v, Random& random) {
  const double limit = as_f32(uniform(random, -3, -0.5));
  v.params = {{"lambda", false, {limit}, {}}};
  v.gate = gap_gate([limit](const TileIndex&) { return limit; }, {});
  v.gate->scope = oracle::Scope::kWarp;
}

/// The threshold moves from `near` at the diagonal to `far`.
void make_distance_gate(Variant& v, Random& random) {
  make_causal(v);
  const int shift = v.problem.n_k - v.problem.n_q;
  const auto near = head_param(v, "near", random, -4, -2);
  const auto far = head_param(v, "far", random, -2, 0);
  const double reach = as_f32(uniform(random, 50, 400));
  v.params.push_back({"reach", false, {reach}, {}});
  v.gate = gap_gate(
      [=](const TileIndex& t) {
        const auto h = static_cast<std::size_t>(t.h);
        return far[h] + (near[h] - far[h]) * std::exp(std::min(t.k1 - t.q0 - shift, 0) / reach);
      },
      [=](const TileIndex& t) { return t.k1 >= t.q0 + shift; });
  v.gate->skips_exp = true;
  v.tiling.descending = true;
}

/// Random block lists; empty rows included.
void make_lists(Variant& v, int tile_q, int tile_k, Random& random) {
  const oracle::Problem& p = v.problem;
  const int q_tiles = (p.n_q + tile_q - 1) / tile_q, k_tiles = (p.n_k + tile_k - 1) / tile_k;
  for (int x = 0; x < p.n_b * p.n_h * q_tiles; ++x) {
    const double density = uniform(random, -0.2, 1.2);
    for (int j = 0; j < k_tiles; ++j)
      v.tiling.listed.push_back(uniform(random, 0, 1) < density ? 1 : 0);
  }
}

}  // namespace

bool make_attend_variant(const std::string& name, Variant& v, KernelTile tile, Random& random) {
  if (name == "window") return make_window(v, random), true;
  if (name == "sink") return make_sink(v, random), true;
  if (name == "sigmoid") return make_sigmoid(v, random), true;
  if (name == "document") return make_document(v, random), true;
  if (name == "softcap" || name == "softcap-reading") return make_softcap(v, random), true;
  if (name == "alibi") return make_alibi(v, random), true;
  if (name == "bsfa") return make_bsfa(v, tile.q, random), true;
  if (name == "skip-softmax") return make_skip_softmax(v, random), true;
  if (name == "distance-gate") return make_distance_gate(v, random), true;
  if (name == "warp-gate") return make_warp_gate(v, random), true;
  if (name == "external-mask") return make_lists(v, tile.q, tile.k, random), true;
  if (name == "lists" || name == "lists-descending") {
    make_causal(v);
    v.tiling.descending = name == "lists-descending";
    return make_lists(v, tile.q, tile.k, random), true;
  }
  if (name == "flash-decoding") return make_causal(v), true;
  return name == "dense";
}

}  // namespace lacuna::numerics
