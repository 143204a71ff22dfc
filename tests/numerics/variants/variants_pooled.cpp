// Variants whose tiles are chosen by the means of their tokens, or by their place alone.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

using oracle::TileFacts;

std::size_t pooled_head(const TileFacts& t) { return static_cast<std::size_t>(t.tile.h); }

/// Distance of the tile's last key from the diagonal of its first query.
int behind(const TileFacts& t, int shift) { return t.tile.q0 + shift - t.tile.k1; }

int shift_of(const Variant& v) { return v.problem.n_k - v.problem.n_q; }

oracle::Predictor& pooled(Variant& v, int tile_q, int tile_k) {
  v.predictor = oracle::Predictor{};
  v.predictor->tile_q = tile_q, v.predictor->tile_k = tile_k;
  v.predictor->estimate = oracle::EstimateRule{};
  return *v.predictor;
}

void quantise_tokens(Variant& v, oracle::Group group, bool values) {
  v.quantisation.qk_bits = 8, v.quantisation.group = group;
  v.quantisation.v_bits = values ? 8 : 16;
  v.quantisation.smooth_q = v.predictor->smooth_q;
  v.quantisation.smooth_k = v.predictor->smooth_k;
}

/// What the sparge family does behind its predictor.
void finish_sparge(Variant& v, Random& random) {
  const auto lambda = head_param(v, "lambda", random, -3, -0.3);
  v.gate = gap_gate(
      [=](const oracle::TileIndex& t) { return lambda[static_cast<std::size_t>(t.h)]; }, {});
  v.gate->scope = oracle::Scope::kWarp;
  v.predictor->smooth_k = true;
  quantise_tokens(v, oracle::Group::kBlock, true);
}

void make_sparge(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.2, 0.99);
  const auto theta = head_param(v, "theta", random, -0.2, 0.5);
  oracle::Predictor& p = pooled(v, 128, 64);
  p.uses_similarity = true;
  p.estimate->exclude = [=](const TileFacts& t) { return t.similar_k < theta[pooled_head(t)]; };
  p.keep = [=](const TileFacts& t) {
    const double share = tau[pooled_head(t)], least = theta[pooled_head(t)];
    return share >= 1 || t.mass_before + t.p <= share || t.rank == 0 || t.similar_q < least ||
           t.similar_k < least;
  };
  finish_sparge(v, random);
}

void make_sparge_video(Variant& v, Random& random) {
  make_sparge(v, random);
  v.order.resize(static_cast<std::size_t>(v.problem.n_q));
  std::iota(v.order.begin(), v.order.end(), 0);
  std::shuffle(v.order.begin(), v.order.end(), random);
}

void make_sparge_topk(Variant& v, Random& random) {
  const auto ratio = head_param(v, "ratio", random, 0.05, 0.9);
  pooled(v, 128, 64).keep = [=](const TileFacts& t) {
    return t.rank < ratio[pooled_head(t)] * t.visible || t.rank == 0;
  };
  finish_sparge(v, random);
}

void make_similar_mass(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.1, 0.6);
  const auto caution = head_param(v, "caution", random, 0.01, 0.5);
  const int shift = shift_of(v);
  oracle::Predictor& p = pooled(v, 128, 64);
  p.smooth_k = p.uses_similarity = true;
  p.keep = [=](const TileFacts& t) {
    const double doubt = 1 - std::max(std::min(t.similar_q, t.similar_k), -1.0);
    return t.mass_before < tau[pooled_head(t)] + caution[pooled_head(t)] * doubt ||
           behind(t, shift) <= 0;
  };
  quantise_tokens(v, oracle::Group::kThread, false);
}

void make_dilated_union(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.1, 0.7);
  const double window = std::floor(uniform(random, 0, 100));
  v.params.push_back({"window", true, {window}, {}});
  const int shift = shift_of(v);
  oracle::Predictor& p = pooled(v, 128, 64);
  p.smooth_k = true;
  p.keep = [=](const TileFacts& t) {
    const int distance = behind(t, shift);
    return t.mass_before < tau[pooled_head(t)] || distance < window ||
           (t.tile.j % 2 == 0 && distance < 4 * window) ||
           (t.tile.j % 4 == 0 && distance < 16 * window);
  };
}

/// The best `count` tiles of each row; with `diagonal`, those that reach it as well.
void make_best(Variant& v, const char* name, oracle::Norm norm, bool diagonal, int tile_q,
               int tile_k, Random& random) {
  const auto count = head_count(v, name, random, 0, 4);
  const int shift = shift_of(v);
  oracle::Predictor& p = pooled(v, tile_q, tile_k);
  p.estimate->norm = norm;
  p.keep = [=](const TileFacts& t) {
    return t.rank < count[pooled_head(t)] || (diagonal && behind(t, shift) <= 0);
  };
}

void make_flexprefill(Variant& v, Random& random) {
  const auto gamma = head_param(v, "gamma", random, 0.3, 0.95);
  const auto budget = head_count(v, "budget", random, 0, 300);
  const int shift = shift_of(v);
  pooled(v, 128, 128).keep = [=](const TileFacts& t) {
    return t.mass_before + t.p <= gamma[pooled_head(t)] || t.rank * 128 < budget[pooled_head(t)] ||
           t.tile.k0 == 0 || behind(t, shift) <= 0;
  };
}

/// A gate of the caller's: random logits of each tile.
void make_seer_attention(Variant& v, Random& random) {
  const auto tau = head_param(v, "tau", random, 0.1, 0.9);
  const double threshold = as_f32(uniform(random, 0.05, 0.6));
  v.params.push_back({"threshold", false, {threshold}, {}});
  const auto tiles = [](int tokens) { return (tokens + 63) / 64; };
  const int q_tiles = tiles(v.problem.n_q), k_tiles = tiles(v.problem.n_k), shift = shift_of(v);
  std::vector<double> gate;
  for (int n = 0; n < v.problem.n_h * q_tiles * k_tiles; ++n)
    gate.push_back(as_f32(uniform(random, -4, 4)));
  v.params.push_back({"gate", false, gate, {v.problem.n_h, q_tiles, k_tiles}});
  oracle::Predictor& p = pooled(v, 64, 64);
  p.estimate->from = [=](const TileFacts& t) {
    const int row = t.tile.h * q_tiles + t.tile.i;
    return gate[static_cast<std::size_t>(row * k_tiles + t.tile.j)];
  };
  p.keep = [=](const TileFacts& t) {
    return t.mass_before < tau[pooled_head(t)] || t.p > threshold || t.tile.j == 0 ||
           behind(t, shift) <= 0;
  };
}

void make_quest(Variant& v, Random& random) {
  const auto pages = head_count(v, "pages", random, 0, 12);
  const int shift = shift_of(v);
  oracle::Predictor& p = pooled(v, 64, 16);
  p.estimate->columns = oracle::Compared::kBounds;
  p.estimate->norm = oracle::Norm::kNone;
  p.keep = [=](const TileFacts& t) {
    return t.rank < pages[pooled_head(t)] || behind(t, shift) <= 0;
  };
  v.tiling.tile_k = 16;
}

void make_streaming(Variant& v, Random& random) {
  const auto sink = head_count(v, "sink", random, 0, 200);
  const auto window = head_count(v, "window", random, 0, 300);
  const int shift = shift_of(v);
  pooled(v, 128, 128).keep = [=](const TileFacts& t) {
    return t.tile.k0 < sink[pooled_head(t)] || behind(t, shift) < window[pooled_head(t)];
  };
  v.predictor->estimate.reset();
}

/// Tiles of the predictor that are longer than any of attend's.
void make_long_tiles(Variant& v, Random& random) {
  const auto window = head_count(v, "window", random, 0, 300);
  const int shift = shift_of(v);
  pooled(v, 512, 64).keep = [=](const TileFacts& t) {
    return t.tile.k0 < 64 || behind(t, shift) < window[pooled_head(t)];
  };
  v.predictor->estimate.reset();
}

int bit_length(int x) { return std::bit_width(static_cast<unsigned>(std::abs(x))); }

void make_radial(Variant& v, Random& random) {
  const int frame = static_cast<int>(uniform(random, 130, 260));
  const int reach = static_cast<int>(uniform(random, -4, 1));
  v.params = {{"frame", true, {double(frame)}, {}}, {"reach", true, {double(reach)}, {}}};
  pooled(v, 128, 128).keep = [=](const TileFacts& t) {
    const int frames = t.tile.q0 / frame - t.tile.k0 / frame;
    const int place = t.tile.q0 % frame - t.tile.k0 % frame;
    return t.tile.k0 < frame || std::abs(frames) <= 1 ||
           bit_length(place) <= std::max(7, bit_length(frame) + reach - bit_length(frames));
  };
  v.predictor->estimate.reset();
}

}  // namespace

bool make_pooled_variant(const std::string& name, Variant& v, KernelTile, Random& random) {
  if (name == "sparge-video") return make_sparge_video(v, random), true;
  if (name == "radial") return make_radial(v, random), true;
  make_causal(v);
  if (name == "sparge") return make_sparge(v, random), true;
  if (name == "sparge-topk") return make_sparge_topk(v, random), true;
  if (name == "similar-mass") return make_similar_mass(v, random), true;
  if (name == "dilated-union") return make_dilated_union(v, random), true;
  if (name == "flexprefill") return make_flexprefill(v, random), true;
  if (name == "seer-attention") return make_seer_attention(v, random), true;
  if (name == "quest") return make_quest(v, random), true;
  if (name == "long-tiles") return make_long_tiles(v, random), true;
  if (name == "streaming") return make_streaming(v, random), true;
  using oracle::Norm;
  if (name == "topk-blocks")
    return make_best(v, "blocks", Norm::kSoftmax, true, 64, 64, random), true;
  if (name == "minference-block")
    return make_best(v, "blocks", Norm::kNone, false, 64, 64, random), true;
  if (name == "moba-blocks")
    return make_best(v, "chunks", Norm::kNone, true, 128, 256, random), true;
  v.problem.mask = {};
  if (name == "vsa-fine") return make_best(v, "cubes", Norm::kSoftmax, false, 64, 64, random), true;
  return false;
}

}  // namespace lacuna::numerics
