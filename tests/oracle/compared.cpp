#include "tests/oracle/compared.hpp"

#include <cmath>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

/// Error of a mean of f32, relative to what was added up.
constexpr double kMeanError = 1e-6;

int cell_tokens(const EstimateRule& rule, bool is_query) {
  return is_query || rule.column_count == 0 ? rule.count : rule.column_count;
}

/// Means of cells of x, which `mean` was taken from (empty: nothing), in a format of few bits. f32
/// arithmetic may round a mean next to the middle of two numbers to either.
Vectors rounded_means(const std::vector<double>& x, const std::vector<double>& mean, int heads,
                      int tokens, int d, int cell, const Format& format) {
  std::vector<double> magnitudes = x;
  for (double& value : magnitudes) value = std::abs(value);
  const auto sums = tile_means(magnitudes, heads, tokens, d, cell);
  Vectors out{tile_means(x, heads, tokens, d, cell), {}};
  const std::size_t per_head = out.value.size() / static_cast<std::size_t>(heads);
  for (std::size_t at = 0; at < out.value.size(); ++at) {
    const std::size_t column = at % static_cast<std::size_t>(d);
    const double taken =
        mean.empty() ? 0 : std::abs(mean[at / per_head * static_cast<std::size_t>(d) + column]);
    const double error = kMeanError * (sums[at] + taken), exact = out.value[at];
    out.value[at] = round_to(exact, format);
    out.slack.push_back(std::max(std::abs(round_to(exact + error, format) - out.value[at]),
                                 std::abs(round_to(exact - error, format) - out.value[at])));
  }
  return out;
}

/// [tiles, 2 d] of each head: the smallest of each element of a tile, then the largest.
std::vector<double> bounds_of(const std::vector<double>& x, int heads, int n, int d, int tile) {
  std::vector<double> out;
  for (int head = 0; head < heads; ++head)
    for (int first = 0; first < n; first += tile)
      for (const bool is_largest : {false, true})
        for (int c = 0; c < d; ++c) {
          double bound = is_largest ? -kInfinity : kInfinity;
          for (int token = first; token < std::min(first + tile, n); ++token) {
            const double value = row_at(x, static_cast<std::size_t>(head * n + token), d)[c];
            bound = is_largest ? std::max(bound, value) : std::min(bound, value);
          }
          out.push_back(bound);
        }
  return out;
}

}  // namespace

std::vector<Item> items_of(Compared compared, int count, int tokens, int tile) {
  const bool cells = compared == Compared::kAntidiagonal || compared == Compared::kCellMean;
  const bool is_tile = compared == Compared::kMean || compared == Compared::kBounds;
  const int width = is_tile ? tile : cells ? count : 1;
  const int step = compared == Compared::kStride ? count : width;
  std::vector<Item> items;
  for (int first = 0; first < tokens; first += step)
    items.push_back({first / width, first, std::min(first + width, tokens) - 1});
  return items;
}

Vectors vectors_of(const std::vector<double>& x, const std::vector<double>& mean, int heads,
                   int tokens, int d, const EstimateRule& rule, Compared compared, int tile,
                   const Grouping& grouping) {
  if (compared == Compared::kMean || compared == Compared::kCellMean) {
    const bool is_relative = rule.norm == Norm::kSoftmax || rule.norm == Norm::kRowMax;
    const bool smooth = !mean.empty() && !grouping.is_query && is_relative;
    const auto smooth_x = smooth ? subtract_means(x, mean, heads, tokens, d) : x;
    if (compared == Compared::kMean) return {tile_means(smooth_x, heads, tokens, d, tile), {}};
    const int cell = cell_tokens(rule, grouping.is_query);
    return rounded_means(smooth_x, smooth ? mean : std::vector<double>{}, heads, tokens, d, cell,
                         rule.cells);
  }
  if (compared == Compared::kBounds) return {bounds_of(x, heads, tokens, d, tile), {}};
  if (rule.bits > 8) return {x, {}};
  return quantise(x, mean, heads, tokens, d, grouping).vectors(d);
}

int vector_count(const EstimateRule& rule, Compared compared, bool is_query, int tokens, int tile) {
  if (compared == Compared::kMean || compared == Compared::kBounds) return tiles_of(tokens, tile);
  return compared == Compared::kCellMean ? tiles_of(tokens, cell_tokens(rule, is_query)) : tokens;
}

}  // namespace lacuna::oracle
