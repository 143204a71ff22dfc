#include "tests/numerics/harness/sequence_formulas.hpp"

#include <cmath>

#include "tests/numerics/variants/random_variant.hpp"
#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

constexpr double kSlope = 0.0625, kSink = 1.5;
constexpr int kWindow = 70, kFirstKeys = 5;

/// What the variant's formulas are, of a sequence.
void set_formulas(const std::string& name, oracle::Problem& problem) {
  const int shift = problem.n_k - problem.n_q;
  const auto causal = [shift](int q, int k, int, int) { return k <= q + shift; };
  if (name != "dense") problem.mask = causal;
  if (name == "window") {
    problem.mask = [=](int q, int k, int, int) {
      return k <= q + shift && (k < kFirstKeys || q + shift - k < kWindow);
    };
  }
  if (name == "sink") {
    problem.mask = [=](int q, int k, int, int) {
      return k <= q + shift && q + shift - k < kWindow;
    };
    problem.sink = [](int, int h, int) { return kSink + h; };
  }
  if (name == "sigmoid") {
    problem.weighting = oracle::Weighting::kSigmoid;
    problem.score = [](double s, int, int, int h, int) { return s - kSlope * (h + 1); };
  }
  if (name == "alibi") {
    problem.score = [=](double s, int q, int k, int h, int) {
      return s - kSlope * (h + 1) * (q + shift - k);
    };
  }
}

/// Of bsfa, whose twin draws a threshold for each query tile of its own length.
void share_thresholds(const SequenceCase& c, Variant& variant) {
  const int q_tiles = (c.most_queries() + c.tile.q - 1) / c.tile.q;
  const auto threshold = [](int h, int i) { return 1.0 + 0.375 * ((h * 7 + i * 3) % 10); };
  std::vector<double> values;
  for (int x = 0; x < c.n_h * q_tiles; ++x) values.push_back(threshold(x / q_tiles, x % q_tiles));
  variant.params = {{"threshold", false, values, {c.n_h, q_tiles}}};
  const int shift = variant.problem.n_k - variant.problem.n_q;
  variant.gate = tile_max_gate([=](const oracle::TileIndex& t) { return threshold(t.h, t.i); },
                               [=](const oracle::TileIndex& t) { return t.k1 >= t.q0 + shift; });
  variant.gate->skips_exp = true;
}

/// Of skip-softmax, whose twin draws a number of tokens for each length.
void share_tokens(Variant& variant) {
  constexpr double kTokens = 60;
  variant.params = {{"c", false, {kTokens}, {}}};
  const double limit = std::log(kTokens / variant.problem.n_k);
  variant.gate = gap_gate([limit](const oracle::TileIndex&) { return limit; }, {});
  variant.gate->skips_exp = true;
}

}  // namespace

bool has_own_params(const SequenceCase& c) {
  return c.is_tiled() || is_random_name(c.variant) || c.variant == "t5-bias" ||
         c.variant == "dilated" || c.variant == "ordered-window" || c.variant.starts_with("chunks");
}

std::vector<ParamValue> params_of(const SequenceCase& c) {
  std::vector<double> slope, sink;
  for (int h = 0; h < c.n_h; ++h) slope.push_back(kSlope * (h + 1)), sink.push_back(kSink + h);
  if (c.variant == "window")
    return {{"sink", true, {kFirstKeys}, {}}, {"window", true, {kWindow}, {}}};
  if (c.variant == "sink") return {{"sink", false, sink, {c.n_h}}, {"window", true, {kWindow}, {}}};
  if (c.variant == "sigmoid") {
    for (double& bias : slope) bias = -bias;
    return {{"bias", false, slope, {c.n_h}}};
  }
  if (c.variant == "alibi") return {{"slope", false, slope, {c.n_h}}};
  return {};
}

Variant variant_of(const SequenceCase& c, std::pair<int, int> lengths, std::uint32_t seed,
                   int entry) {
  Case dense = c.of_sequence(lengths, entry);
  if (has_own_params(c)) {
    dense.variant = c.variant;
    Variant variant = make_variant(dense, c.tile, seed, kParamsSeed);
    if (c.variant == "skip-softmax") share_tokens(variant);
    if (c.variant == "bsfa") share_thresholds(c, variant);
    return variant;
  }
  KernelTile tile;
  tile.q = 128, tile.k = 128;
  Variant variant = make_variant(dense, tile, seed);
  set_formulas(c.variant, variant.problem);
  return variant;
}

}  // namespace lacuna::numerics
