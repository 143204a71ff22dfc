#include "tests/device/single_tests/predict_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace lacuna::device {
namespace {

constexpr double kPredictInf = std::numeric_limits<double>::infinity();

/// Scales are those of tiles of at least 16 queries and 32 keys.
int query_group(const PredictCase& c, int n) {
  if (c.group == QuantGroup::kThread) return n / 16 * 8 + n % 8;
  return n / (c.group == QuantGroup::kWarp ? 16 : std::max(c.tile_q, 16));
}
int key_group(const PredictCase& c, int n) {
  if (c.group == QuantGroup::kThread) return n / 32 * 4 + n % 8 / 2;
  return n / std::max(c.tile_k, 32);
}

}  // namespace

bool PredictProblem::pair_visible(int q, int k) const {
  return !case_.causal || k <= q + shape_.n_k - shape_.n_q;
}
bool PredictProblem::range_visible(int q1, int k0) const { return pair_visible(q1, k0); }

double PredictProblem::token_dot(int b, int h, int q, int k) const {
  if (q >= shape_.n_q || k >= shape_.n_k) return 0;  // missing tokens of the last cell
  const int h_kv = h / shape_.heads_per_kv;
  const long long d = case_.head_dim;
  const auto* x =
      &q_[offset_of(((static_cast<long long>(b) * shape_.n_h + h) * shape_.n_q + q) * d)];
  const auto* y =
      &k_[offset_of(((static_cast<long long>(b) * n_h_kv_ + h_kv) * shape_.n_k + k) * d)];
  double sum = 0;
  for (long long n = 0; n < d; ++n) sum += value_of(x[n]) * value_of(y[n]);
  return sum;
}

int PredictProblem::row_count(int i) const {
  const int tokens = std::min(case_.tile_q, shape_.n_q - i * case_.tile_q);
  switch (case_.rows) {
    case RowKind::kMean:
      return 1;
    case RowKind::kTokens:
      return tokens;
    case RowKind::kAntidiagonal:
      return tiles_in(tokens, case_.count);
    case RowKind::kLast:
      return std::min(case_.count, shape_.n_q);
    case RowKind::kNone:
      return 0;
  }
  return 0;
}

/// First token of row r.
int PredictProblem::row_token(int i, int r) const {
  if (case_.rows == RowKind::kLast) return shape_.n_q - row_count(i) + r;
  return i * case_.tile_q + r * (case_.rows == RowKind::kAntidiagonal ? case_.count : 1);
}

/// Row r of query tile i and column c (a tile, cell or token), in the estimate's own arithmetic.
double PredictProblem::dot(int b, int h, int i, int r, int c) const {
  const long long d = case_.head_dim, head = static_cast<long long>(b) * shape_.n_h + h;
  const long long head_kv = static_cast<long long>(b) * n_h_kv_ + h / shape_.heads_per_kv;
  const PredictArgs& predict = args_.predict;
  double sum = 0;
  if (case_.rows == RowKind::kMean) {
    const float* x = &q_summary_[offset_of((head * predict.keep_q_tiles + i) * d)];
    for (long long n = 0; n < d; ++n) {
      sum += x[n] *
             (case_.columns_are_tokens
                  ? value_of(k_[offset_of((head_kv * shape_.n_k + c) * d + n)])
                  : double{k_summary_[offset_of((head_kv * predict.keep_k_tiles + c) * d + n)]});
    }
    return sum;
  }
  const int q = row_token(i, r);
  if (case_.rows == RowKind::kAntidiagonal) {
    for (int s = 0; s < case_.count; ++s)
      sum += token_dot(b, h, q + case_.count - 1 - s, c * case_.count + s);
    return sum / case_.count;
  }
  if (case_.bits == 16) return token_dot(b, h, q, c);
  for (long long n = 0; n < d; ++n)
    sum += double{1} * q_values_[offset_of((head * predict.q_padded + q) * d + n)] *
           k_values_[offset_of((head_kv * predict.k_padded + c) * d + n)];
  sum *= double{q_scale_[offset_of(head * predict.estimate_q_groups + query_group(case_, q))]} *
         k_scale_[offset_of(head_kv * predict.estimate_k_groups + key_group(case_, c))];
  if (case_.biased) {
    sum += double{row_bias_[offset_of(head * predict.q_padded + q)]} +
           column_bias_[offset_of(head * predict.k_padded + c)];
  }
  return sum;
}

double PredictProblem::reference_lse(int b, int h, int q) const {
  double largest = -kPredictInf, sum = 0;
  std::vector<double> logits;
  for (int k = 0; k < shape_.n_k; ++k) {
    if (!pair_visible(q, k) || !(k < args_.sink || q - k < args_.local)) continue;
    logits.push_back(args_.attend.scale * token_dot(b, h, q, k));
    largest = std::max(largest, logits.back());
  }
  for (const double logit : logits) sum += std::exp(logit - largest);
  return logits.empty() ? -kPredictInf : largest + std::log(sum);
}

std::vector<PredictProblem::Tile> PredictProblem::work_tile_index(int b, int h, int i) const {
  const bool cells = case_.rows == RowKind::kAntidiagonal, means = case_.rows == RowKind::kMean;
  const int width = cells ? case_.count : means && !case_.columns_are_tokens ? case_.tile_k : 1;
  const int head_kv = b * n_h_kv_ + h / shape_.heads_per_kv;
  const bool plain = case_.normalise == Normalise::kNone;
  const int i_q1 = std::min((i + 1) * case_.tile_q, shape_.n_q) - 1;
  std::vector<Tile> tiles(offset_of(columns()));
  for (int j = 0; j < columns(); ++j) {
    const double none = plain ? -kPredictInf : 0;
    tiles[offset_of(j)] = {-kPredictInf, none, range_visible(i_q1, j * case_.tile_k)};
  }
  int rows_with_columns = 0;
  for (int r = 0; r < row_count(i); ++r) {
    const int q0 = means ? i * case_.tile_q : row_token(i, r);
    const int q1 = means ? i_q1 : std::min(q0 + (cells ? case_.count : 1), shape_.n_q) - 1;
    std::vector<std::pair<int, double>> logits;  // by column
    for (int c = 0; c * width < shape_.n_k; ++c) {
      const int j = c * width / case_.tile_k;
      if (!range_visible(q1, c * width)) continue;
      if (case_.excludes && k_similarity_[offset_of(head_kv * columns() + j)] < args_.theta)
        continue;
      logits.emplace_back(j, double{args_.attend.scale} * case_.temperature * dot(b, h, i, r, c));
    }
    const bool is_nan =
        std::ranges::any_of(logits, [](const auto& column) { return std::isnan(column.second); });
    if (is_nan) continue;  // hurts no other row
    rows_with_columns += !logits.empty();
    double lse = 0, largest = -kPredictInf;
    if (case_.normalise == Normalise::kSoftmax) {
      for (const auto& [j, logit] : logits) largest = std::max(largest, logit);
      for (const auto& [j, logit] : logits) lse += std::exp(logit - largest);
      lse = largest + std::log(lse);
    } else if (case_.normalise == Normalise::kLse) {
      lse = reference_lse(b, h, q0);
    } else if (case_.normalise == Normalise::kPreviousLse) {
      lse =
          previous_lse_[offset_of((static_cast<long long>(b) * shape_.n_h + h) * shape_.n_q + q0)];
    }
    if (!(lse > -kPredictInf)) continue;
    for (const auto& [j, logit] : logits) {
      Tile& tile = tiles[offset_of(j)];
      const double weight = plain ? logit : std::exp(logit - lse);
      if (case_.sums) {
        tile.score = tile.score == -kPredictInf ? logit : tile.score + logit;
        tile.p = tile.p == -kPredictInf ? weight : tile.p + weight;
      } else {
        tile.score = std::max(tile.score, logit);
        tile.p = std::max(tile.p, weight);
      }
    }
  }
  for (Tile& tile : tiles)
    if (case_.sums && rows_with_columns > 0) tile.p /= rows_with_columns;
  return tiles;
}

std::string PredictProblem::check_row(int row, const std::vector<Tile>& tiles, double slack) const {
  const TileRecord* records = &records_[offset_of(static_cast<long long>(row) * columns())];
  std::ostringstream wrong;
  const auto near = [&](double x, double y, double scale) {
    return x == y || std::abs(x - y) <= slack * (4e-6 * scale + 2e-5 * std::abs(y));
  };
  int visible = 0;
  for (const Tile& tile : tiles) visible += tile.is_visible;
  // Sums of logits cancel.
  const double terms = case_.sums ? case_.tile_q * case_.tile_k : 1;
  for (int j = 0; j < columns(); ++j) {
    const Tile& tile = tiles[offset_of(j)];
    const TileRecord& got = records[j];
    const bool kept = is_kept(row, j);
    if (got.calls != tile.is_visible) wrong << j << ": asked " << got.calls << " times\n";
    if (!tile.is_visible && kept) wrong << j << ": invisible, but kept\n";
    if (!tile.is_visible) continue;
    const bool plain = case_.normalise == Normalise::kNone;
    if (!near(got.p, tile.p, plain ? 10 * terms : 1)) {
      wrong << j << ": p " << got.p << ", expected " << tile.p << "\n";
    }
    if (case_.scored && !near(got.score, tile.score, 10 * terms)) {
      wrong << j << ": score " << got.score << ", expected " << tile.score << "\n";
    }
    if (got.visible != visible) wrong << j << ": visible " << got.visible << "\n";
    if (case_.ranked) {
      int rank = 0;
      double mass = 0;
      for (int other = 0; other < columns(); ++other) {
        const TileRecord& o = records[other];
        if (!tiles[offset_of(other)].is_visible || !(o.p > got.p || (o.p == got.p && other < j)))
          continue;
        ++rank;
        mass += o.p;
      }
      if (got.rank != rank) wrong << j << ": rank " << got.rank << ", expected " << rank << "\n";
      if (!near(got.mass_before, mass, 1)) {
        wrong << j << ": mass " << got.mass_before << ", expected " << mass << "\n";
      }
    }
    const int q0 = row % args_.predict.keep_q_tiles * case_.tile_q, k0 = j * case_.tile_k;
    const bool is_static = case_.rows == RowKind::kNone;
    const int k1 = std::min(k0 + case_.tile_k, shape_.n_k) - 1;
    const bool by_place = k0 < args_.sink || q0 - k1 < args_.local;
    const bool by_value =
        (case_.excludes && q_similarity_[offset_of(row)] < args_.theta) || got.p > args_.tau ||
        (case_.ranked && (got.rank < args_.top || got.mass_before + got.p <= args_.mass));
    const bool expected = is_static ? by_place : by_value;
    if (kept != expected) wrong << j << ": kept " << kept << ", expected " << expected << "\n";
  }
  return wrong.str();
}

/// Nothing was recorded: by what the tiles should have been given, and a little way off.
std::string PredictProblem::check_first(int row, const std::vector<Tile>& tiles) const {
  std::ostringstream wrong;
  int visible = 0, kept = 0;
  for (int j = 0; j < columns(); ++j) {
    const Tile& tile = tiles[offset_of(j)];
    visible += tile.is_visible;
    kept += is_kept(row, j);
    if (!tile.is_visible && is_kept(row, j)) wrong << j << ": invisible, but kept\n";
    if (!tile.is_visible || is_kept(row, j)) continue;
    for (int other = 0; other < columns(); ++other) {
      if (!is_kept(row, other)) continue;
      const double p = tiles[offset_of(other)].p, least = tile.p - 1e-5 * (1 + std::abs(tile.p));
      if (p < least || (p == tile.p && j < other)) {
        wrong << other << ": kept with " << p << " before " << j << " with " << tile.p << "\n";
      }
    }
  }
  const int expected = std::min(visible, args_.top);
  if (kept != expected) wrong << "kept " << kept << ", expected " << expected << "\n";
  return wrong.str();
}

std::string PredictProblem::check(double slack) const {
  for (int row = 0; row < rows(); ++row) {
    const int i = row % args_.predict.keep_q_tiles, head = row / args_.predict.keep_q_tiles;
    const std::vector<Tile> tiles = work_tile_index(head / shape_.n_h, head % shape_.n_h, i);
    std::string wrong = case_.first ? check_first(row, tiles) : check_row(row, tiles, slack);
    for (int j = columns(); j < args_.predict.keep_words * 32; ++j)
      if (is_kept(row, j)) wrong += std::to_string(j) + ": a bit past the last tile\n";
    if (!wrong.empty()) return "row " + std::to_string(row) + "\n" + wrong.substr(0, 600);
  }
  return "";
}

int PredictProblem::kept_count() const {
  int count = 0;
  for (const unsigned word : kept_) count += __builtin_popcount(word);
  return count;
}

}  // namespace lacuna::device
