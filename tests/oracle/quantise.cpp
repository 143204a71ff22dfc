#include "tests/oracle/quantise.hpp"

#include <cmath>
#include <limits>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

/// Relative error of a mean of f32 and of the difference from it.
constexpr double kQuantisedDifferenceError = 1e-6;
/// Magnitudes below which devices may flush.
constexpr float kSmallestScale = 1e-36F;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t at(int a, int size_b, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(size_b) +
         static_cast<std::size_t>(b);
}

}  // namespace

std::vector<double> token_means(const std::vector<double>& x, int heads, int tokens, int d) {
  std::vector<double> mean(at(heads, d, 0), 0.0);
  for (int row = 0; row < heads * tokens; ++row)
    for (int c = 0; c < d; ++c) {
      const double value = x[at(row, d, c)];
      mean[at(row / tokens, d, c)] += std::isfinite(value) ? value / tokens : 0;
    }
  return mean;
}

std::vector<double> subtract_means(const std::vector<double>& x, const std::vector<double>& mean,
                                   int heads, int tokens, int d) {
  std::vector<double> out = x;
  for (int row = 0; row < heads * tokens; ++row)
    for (int c = 0; c < d; ++c) out[at(row, d, c)] -= mean[at(row / tokens, d, c)];
  return out;
}

int group_of(const Grouping& grouping, int token) {
  const int tile = token / grouping.tile, inside = token % grouping.tile;
  if (grouping.group == Group::kThread && grouping.is_query)
    return tile * (grouping.tile / 2) + inside / 16 * 8 + inside % 8;
  if (grouping.group == Group::kThread)
    return tile * ((grouping.tile + 7) / 8) + inside / 32 * 4 + inside % 8 / 2;
  if (grouping.group == Group::kWarp && grouping.is_query)
    return tile * (grouping.tile / 16) + inside / 16;
  return tile;
}

Vectors Quantised::vectors(int d) const {
  Vectors out;
  for (std::size_t x = 0; x < integers.size(); ++x) {
    const double step = static_cast<double>(scale[x / static_cast<std::size_t>(d)]);
    out.value.push_back(integers[x] * step);
    out.slack.push_back(slack[x] * step);
  }
  return out;
}

Quantised quantise(const std::vector<double>& x, const std::vector<double>& mean, int heads,
                   int tokens, int d, const Grouping& grouping) {
  const float largest_integer = grouping.bits == 4 ? 7 : 127;
  Quantised out;
  std::vector<float> difference(x.size());
  for (int row = 0; row < heads * tokens; ++row)
    for (int c = 0; c < d; ++c) {
      const double m = mean.empty() ? 0 : mean[at(row / tokens, d, c)];
      difference[at(row, d, c)] = static_cast<float>(x[at(row, d, c)]) - static_cast<float>(m);
    }
  // Of a difference from the mean, absolute.
  const auto error_of = [&](int row, int c) {
    if (mean.empty()) return 0.0;
    return kQuantisedDifferenceError *
           (std::abs(x[at(row, d, c)]) + std::abs(mean[at(row / tokens, d, c)]));
  };
  const int groups = tokens == 0 ? 0 : tiles_of(tokens, grouping.tile) * grouping.tile;
  std::vector<float> largest(at(heads, groups, 0), 0.0F);
  std::vector<double> largest_error(largest.size(), 0.0);
  const auto group_at = [&](int row) {
    return at(row / tokens, groups, group_of(grouping, row % tokens));
  };
  for (int row = 0; row < heads * tokens; ++row)
    for (int c = 0; c < d; ++c) {
      float& group = largest[group_at(row)];
      const float magnitude = std::fabs(difference[at(row, d, c)]);
      if (std::isfinite(magnitude)) group = std::max(group, magnitude);
      double& error = largest_error[group_at(row)];
      error = std::max(error, error_of(row, c));
    }
  for (int row = 0; row < heads * tokens; ++row) {
    const float amax = largest[group_at(row)];
    const float scale = amax == 0 ? 1 : amax / largest_integer;
    out.scale.push_back(scale);
    for (int c = 0; c < d; ++c) {
      const double value = static_cast<double>(difference[at(row, d, c)]);
      const double quotient = amax == 0 ? 0 : value / static_cast<double>(scale);
      const double scale_error =
          amax == 0 ? 0 : 4e-7 + largest_error[group_at(row)] / static_cast<double>(amax);
      const double error =
          error_of(row, c) / static_cast<double>(scale) + std::abs(quotient) * scale_error;
      // The rounding of f32: a quotient next to a half may become the half.
      const auto integer = static_cast<double>(std::round(difference[at(row, d, c)] / scale));
      const double reach = std::max(std::abs(std::round(quotient + error) - integer),
                                    std::abs(std::round(quotient - error) - integer));
      out.integers.push_back(std::isnan(integer) ? 0 : static_cast<int>(integer));
      out.slack.push_back(amax < kSmallestScale ? 1 + std::abs(quotient) : reach);
    }
  }
  return out;
}

double round_e4m3(double x) {
  if (std::isnan(x)) return x;
  const double magnitude = std::abs(x);
  if (magnitude >= 448) return std::copysign(448.0, x);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = fraction * 2^exponent, fraction in [0.5, 1)
  const double step = std::ldexp(1.0, std::max(exponent - 1, -6) - 3);
  return std::copysign(std::nearbyint(magnitude / step) * step, x);
}

std::vector<double> quantise_values(const std::vector<double>& v, int heads, int tokens, int d,
                                    double range) {
  std::vector<double> out(v.size());
  for (int h = 0; h < heads; ++h)
    for (int c = 0; c < d; ++c) {
      double largest = 0;
      for (int n = 0; n < tokens; ++n) {
        const double magnitude = std::abs(v[at(h * tokens + n, d, c)]);
        if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
      }
      const float scale =
          largest == 0 ? 1 : static_cast<float>(largest) / static_cast<float>(range);
      for (int n = 0; n < tokens; ++n) {
        const std::size_t x = at(h * tokens + n, d, c);
        const auto step = static_cast<double>(scale);
        out[x] = std::isinf(v[x])
                     ? kNan
                     : round_e4m3(static_cast<double>(static_cast<float>(v[x]) / scale)) * step;
      }
    }
  return out;
}

namespace {

/// x [n_b, heads_x, n, d] . onto [n_b, heads_onto, d] for each query head: [n_b, n_h, n].
std::vector<double> project(const Problem& p, const std::vector<double>& x, bool x_is_query,
                            const std::vector<double>& onto) {
  std::vector<double> out;
  for (int b = 0; b < p.n_b; ++b)
    for (int h = 0; h < p.n_h; ++h)
      for (int n = 0; n < (x_is_query ? p.n_q : p.n_k); ++n) {
        const std::size_t row = x_is_query ? query_index(p, b, h, n) : key_index(p, b, h, n);
        const std::size_t other =
            x_is_query ? flat_row(b, p.n_h_kv, kv_head(p, h), 1, 0) : flat_row(b, p.n_h, h, 1, 0);
        out.push_back(dot(row_at(x, row, p.d), row_at(onto, other, p.d), p.d));
      }
  return out;
}

}  // namespace

Problem quantised_problem(const Problem& p, const Quantisation& form) {
  Problem out = p;
  const int q_heads = p.n_b * p.n_h, k_heads = p.n_b * p.n_h_kv;
  if (form.qk_bits == 8) {
    std::vector<double> q_mean, k_mean;
    if (form.smooth_q) q_mean = token_means(p.q, q_heads, p.n_q, p.d);
    if (form.smooth_k) k_mean = token_means(p.k, k_heads, p.n_k, p.d);
    const Grouping queries{8, form.group, form.tile_q, true};
    const Grouping keys{8, form.group, form.tile_k, false};
    out.q = quantise(p.q, q_mean, q_heads, p.n_q, p.d, queries).vectors(p.d).value;
    out.k = quantise(p.k, k_mean, k_heads, p.n_k, p.d, keys).vectors(p.d).value;
    if (form.smooth_k) out.row_bias = project(p, p.q, true, k_mean);
    if (form.smooth_q) {
      const auto k = form.smooth_k ? subtract_means(p.k, k_mean, k_heads, p.n_k, p.d) : p.k;
      out.column_bias = project(p, k, false, q_mean);
    }
  }
  if (form.v_bits == 8) {
    out.v = quantise_values(p.v, k_heads, p.n_k, p.d, form.range);
    out.e4m3_weights = true;
  }
  return out;
}

}  // namespace lacuna::oracle
