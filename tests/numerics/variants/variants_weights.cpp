// Variants whose weights no sum divides: logits that are weights themselves. (Sigmoids stand in
// variants_attend.cpp.) Their specs lie in tests/device/specs, that of hstu in specs.
#include <algorithm>
#include <cmath>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

/// Half of all pairs, and rows that see no key.
void make_relu_squared(Variant& v, Random& random) {
  const int n_q = v.problem.n_q, n_k = v.problem.n_k;
  std::vector<double> seen;
  for (int q = 0; q < n_q; ++q)
    for (int k = 0; k < n_k; ++k)
      seen.push_back(q % 11 != 3 && uniform(random, 0, 1) < 0.5 ? 1 : 0);
  v.params = {{"seen", true, seen, {n_q, n_k}}};
  v.problem.scale = 0.25;
  v.problem.mask = [=](int q, int k, int, int) {
    return seen[static_cast<std::size_t>(q * n_k + k)] != 0;
  };
  v.problem.score = [=](double s, int, int, int, int) {
    const double positive = std::fmax(s, 0);
    return positive * positive / n_k;
  };
}

void make_retention(Variant& v, Random& random) {
  make_causal(v);
  const int shift = v.problem.n_k - v.problem.n_q;
  const auto rate = head_param(v, "rate", random, -2, -0.05);
  v.problem.scale = as_f32(0.01);
  v.problem.score = [=](double s, int q, int k, int h, int) {
    return s * std::exp2((q + shift - k) * rate[static_cast<std::size_t>(h)]);
  };
}

void make_split_scores(Variant& v, Random& random) {
  const int shift = v.problem.n_k - v.problem.n_q;
  const auto far = head_param(v, "far", random, -1, 1);
  v.problem.mask = [=](int q, int k, int, int) { return k + 20 <= q + shift; };
  v.problem.score = [=](double s, int, int, int h, int) {
    return std::max(s, -0.5) + far[static_cast<std::size_t>(h)];
  };
}

void make_linear_dilated(Variant& v) {
  const int shift = v.problem.n_k - v.problem.n_q;
  v.problem.mask = [=](int q, int k, int, int) {
    return k <= q + shift && (q + shift - k) % 3 == 0;
  };
}

void make_int8_linear(Variant& v) {
  const int shift = v.problem.n_k - v.problem.n_q;
  v.quantisation.qk_bits = 8;
  v.problem.mask = [=](int q, int k, int, int) { return k + 20 <= q + shift; };
}

void make_hstu(Variant& v, Random& random) {
  make_causal(v);
  const int n_b = v.problem.n_b, n_k = v.problem.n_k, shift = n_k - v.problem.n_q;
  std::vector<double> time;
  for (int b = 0; b < n_b; ++b) {
    double now = std::floor(uniform(random, 0, 1000));
    for (int k = 0; k < n_k; ++k) {
      time.push_back(now);
      now += std::floor(std::exp(uniform(random, 0, 8)));
    }
  }
  v.params = {{"time", true, time, {n_b, n_k}}};
  const auto position = add_table(v, "position", {n_k}, random);
  const auto age = add_table(v, "age", {129}, random);
  v.problem.scale = 1;
  v.problem.score = [=](double s, int q, int k, int, int b) {
    const int last = q + shift, next = std::clamp(last + 1, 0, n_k - 1);
    const auto row = static_cast<std::size_t>(b * n_k);
    const double seconds = std::abs(time[row + static_cast<std::size_t>(next)] -
                                    time[row + static_cast<std::size_t>(k)]);
    const double bucket = std::min(std::floor(std::log(std::max(seconds, 1.0)) / 0.301), 128.0);
    const double x = s + position[static_cast<std::size_t>(std::clamp(last - k, 0, n_k - 1))] +
                     age[static_cast<std::size_t>(bucket)];
    return x / (1 + std::exp(-x)) / n_k;
  };
}

}  // namespace

bool make_weights_variant(const std::string& name, Variant& v, Random& random) {
  v.problem.weighting = oracle::Weighting::kLogit;
  if (name == "relu-squared") return make_relu_squared(v, random), true;
  if (name == "retention") return make_retention(v, random), true;
  if (name == "split-scores") return make_split_scores(v, random), true;
  if (name == "linear-dilated") return make_linear_dilated(v), true;
  if (name == "int8-linear") return make_int8_linear(v), true;
  if (name == "hstu") return make_hstu(v, random), true;
  v.problem.weighting = oracle::Weighting::kSoftmax;
  return false;
}

}  // namespace lacuna::numerics
