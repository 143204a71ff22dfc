#include "tests/oracle/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

/// Error of x - mean in f32, relative to |x| + |mean|; of sums of f32, relative to their terms.
constexpr double kDifferenceError = 1e-6;
constexpr double kSumError = 1e-5;
/// Lengths of rows whose squares f32 cannot hold.
constexpr double kShortest = 1e-17;

/// The row x - mean and how far f32 may be from it.
struct CentredRow {
  std::vector<double> value;
  double length = 0, error = 0;
};

CentredRow difference(const double* x, const double* mean, int d) {
  CentredRow row;
  double scale = 0;
  for (int c = 0; c < d; ++c) {
    const double m = mean == nullptr ? 0 : mean[c];
    row.value.push_back(x[c] - m);
    row.length += (x[c] - m) * (x[c] - m);
    scale += (std::abs(x[c]) + std::abs(m)) * (std::abs(x[c]) + std::abs(m));
  }
  row.length = std::sqrt(row.length);
  row.error = mean == nullptr ? 0 : kDifferenceError * std::sqrt(scale);
  return row;
}

/// `rows` are the tile's.
Band similarity_of(const std::vector<CentredRow>& rows, int d, Similarity form) {
  std::vector<double> sum(static_cast<std::size_t>(d), 0.0);
  double longest = 0, error = kSumError;
  int count = 0;
  bool undecided = false;
  for (const CentredRow& row : rows) {
    undecided = undecided || (row.length > 0 && row.length < kShortest) ||
                (row.error > 0 && row.length < 20 * row.error);
    if (row.length == 0 || !std::isfinite(row.length)) continue;
    ++count;
    longest = std::max(longest, row.length);
    error = std::max(error, kSumError + 4 * row.error / row.length);
    for (std::size_t c = 0; c < sum.size(); ++c)
      sum[c] += row.value[c] / (form == Similarity::kCosine ? row.length : 1);
  }
  Band band{-kInfinity, -kInfinity, -kInfinity};
  if (count > 0) {
    double squared = 0;
    for (const double x : sum) squared += x / count * (x / count);
    band.value = form == Similarity::kCosine ? squared : squared / (longest * longest);
    band.low = band.value - error, band.high = band.value + error;
  }
  if (undecided) band.low = -kInfinity, band.high = 2;
  return band;
}

}  // namespace

std::vector<double> tile_means(const std::vector<double>& x, int heads, int tokens, int d,
                               int tile) {
  const int tiles = tiles_of(tokens, tile);
  std::vector<double> out(flat_row(0, 1, 0, 1, heads * tiles) * static_cast<std::size_t>(d), 0.0);
  for (int h = 0; h < heads; ++h)
    for (int n = 0; n < tokens; ++n) {
      const int t = n / tile, count = std::min(tile, tokens - t * tile);
      const double* from = row_at(x, flat_row(0, heads, h, tokens, n), d);
      double* to = out.data() + flat_row(0, heads, h, tiles, t) * static_cast<std::size_t>(d);
      for (int c = 0; c < d; ++c) to[c] += std::isfinite(from[c]) ? from[c] / count : 0;
    }
  return out;
}

double round_to(double x, const Format& format) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const double step =
      std::ldexp(1.0, std::max(exponent, format.least_exponent) - format.significant);
  return std::nearbyint(x / step) * step;
}

std::vector<Band> self_similarity(const std::vector<double>& x, const std::vector<double>& mean,
                                  int heads, int tokens, int d, int tile, Similarity form) {
  std::vector<Band> out;
  for (int h = 0; h < heads; ++h)
    for (int t = 0; t < tiles_of(tokens, tile); ++t) {
      std::vector<CentredRow> rows;
      for (int n = t * tile; n < std::min((t + 1) * tile, tokens); ++n)
        rows.push_back(
            difference(row_at(x, flat_row(0, heads, h, tokens, n), d),
                       mean.empty() ? nullptr : row_at(mean, static_cast<std::size_t>(h), d), d));
      out.push_back(similarity_of(rows, d, form));
    }
  return out;
}

}  // namespace lacuna::oracle
