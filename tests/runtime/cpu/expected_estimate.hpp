// An estimate as a plain double computation of every pair, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/cpu/ops/estimate.hpp"

namespace lacuna::predict {

inline constexpr double kEstimateInfinity = std::numeric_limits<double>::infinity();

/// A row or column of the comparison: its tokens, and what is compared.
struct Vector {
  int first = 0, last = 0;
  std::vector<double> value;
};

struct Side {
  std::vector<std::vector<double>> tokens;
  int tile = 0;
  Summary kind;
};

inline std::vector<Vector> vectors_of(const Side& side, bool is_query) {
  const int n = static_cast<int>(side.tokens.size());
  const auto d = side.tokens[0].size();
  std::vector<Vector> result;
  const bool mean = side.kind.kind == SummaryKind::kMean;
  const bool cell = side.kind.kind == SummaryKind::kAntidiagonal;
  const int step = mean ? side.tile : cell ? side.kind.count : 1;
  for (int first = 0; first < n; first += step) {
    Vector vector{first, std::min(first + step, n) - 1, {}};
    if (mean) vector.value.resize(d);
    for (int s = 0; s < step; ++s) {
      const int token = cell && is_query ? first + step - 1 - s : first + s;
      for (std::size_t c = 0; c < d; ++c) {
        const double x = token < n ? side.tokens[static_cast<std::size_t>(token)][c] : 0.0;
        if (mean) vector.value[c] += x / (vector.last - first + 1);
        if (!mean) vector.value.push_back(x);
      }
    }
    result.push_back(vector);
  }
  return result;
}

using TokenMask = std::function<bool(int q, int k)>;

/// What an estimate should be for one head.
struct Expected {
  Side q, k;
  double scale = 1;
  Reduce reduce = Reduce::kMax;
  Normalise normalise = Normalise::kSoftmax;
  TokenMask mask = [](int, int) { return true; };
  std::optional<TokenMask> reference;
  const float* previous_lse = nullptr;
  std::function<bool(int i, int j)> excluded = [](int, int) { return false; };

  std::vector<double> p, score;  ///< by key tile

  double logit(const Vector& row, const Vector& column) const {
    double sum = 0;
    for (std::size_t c = 0; c < row.value.size(); ++c) sum += row.value[c] * column.value[c];
    return scale * sum / (q.kind.kind == SummaryKind::kAntidiagonal ? q.kind.count : 1);
  }

  bool sees(const Vector& row, const Vector& column) const {
    for (int a = row.first; a <= row.last; ++a) {
      for (int b = column.first; b <= column.last; ++b) {
        if (mask(a, b)) return true;
      }
    }
    return false;
  }

  double lse_of(const Vector& row, const std::vector<Vector>& seen) const {
    if (normalise == Normalise::kNone) return 0;
    if (normalise == Normalise::kPreviousLse) return double{previous_lse[row.first]};
    double sum = 0;
    if (normalise == Normalise::kSoftmax) {
      for (const Vector& column : seen) sum += std::exp(logit(row, column));
    } else {
      for (int key = 0; key < static_cast<int>(k.tokens.size()); ++key) {
        if (!mask(row.first, key) || !(*reference)(row.first, key)) continue;
        sum += std::exp(logit(row, {key, key, k.tokens[static_cast<std::size_t>(key)]}));
      }
    }
    return std::log(sum);
  }

  void compute(int i) {
    const auto k_tiles =
        (k.tokens.size() + static_cast<std::size_t>(k.tile) - 1) / static_cast<std::size_t>(k.tile);
    const bool none = normalise == Normalise::kNone;
    score.assign(k_tiles, -kEstimateInfinity);
    p.assign(k_tiles, none ? -kEstimateInfinity : 0.0);
    int rows = 0;
    const int n_q = static_cast<int>(q.tokens.size());
    for (const Vector& row : vectors_of(q, true)) {
      const bool last = q.kind.kind == SummaryKind::kLast;
      if (last ? row.first < n_q - q.kind.count : row.first / q.tile != i) continue;
      std::vector<Vector> seen;
      for (const Vector& column : vectors_of(k, false)) {
        if (!excluded(i, column.first / k.tile) && sees(row, column)) seen.push_back(column);
      }
      rows += seen.empty() ? 0 : 1;
      const double lse = lse_of(row, seen);
      if (lse == -kEstimateInfinity) continue;
      for (const Vector& column : seen) take(row, column, lse);
    }
    for (double& value : p) {
      if (reduce == Reduce::kSum && rows > 0) value /= rows;
    }
  }

  void take(const Vector& row, const Vector& column, double lse) {
    const auto tile = static_cast<std::size_t>(column.first / k.tile);
    const double l = logit(row, column);
    const double weight = normalise == Normalise::kNone ? l : std::exp(l - lse);
    const bool first = score[tile] == -kEstimateInfinity;
    if (reduce == Reduce::kMax) {
      score[tile] = std::max(score[tile], l);
      p[tile] = std::max(p[tile], weight);
    } else {
      score[tile] = first ? l : score[tile] + l;
      p[tile] = first ? weight : p[tile] + weight;
    }
  }
};

}  // namespace lacuna::predict
