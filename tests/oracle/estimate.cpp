#include "tests/oracle/estimate.hpp"

#include <cmath>
#include <limits>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

/// Error of a product of f32 sums relative to the lengths of its vectors, and in itself.
constexpr double kProductError = 1e-5, kLogitError = 4e-6;
/// Weights below this may be flushed to zero.
constexpr double kSmallest = 1e-36;

struct Logit {
  double value = -kInfinity, error = 0;
};

std::vector<double> lengths_of(const std::vector<double>& vectors, int d) {
  std::vector<double> out;
  for (std::size_t row = 0; row < vectors.size() / static_cast<std::size_t>(d); ++row)
    out.push_back(std::sqrt(dot(row_at(vectors, row, d), row_at(vectors, row, d), d)));
  return out;
}

/// What smoothing took from the logits of integers.
void add_biases(Prepared& out, const std::vector<double>& q_mean,
                const std::vector<double>& k_mean) {
  const Problem& p = *out.problem;
  for (int b = 0; b < p.n_b; ++b)
    for (int h = 0; h < p.n_h; ++h) {
      const std::size_t q_head = flat_row(b, p.n_h, h, 1, 0);
      const std::size_t k_head = flat_row(b, p.n_h_kv, kv_head(p, h), 1, 0);
      for (int q = 0; q < p.n_q && !k_mean.empty(); ++q)
        out.row_bias.push_back(
            dot(row_at(p.q, query_index(p, b, h, q), p.d), row_at(k_mean, k_head, p.d), p.d));
      for (int k = 0; k < p.n_k && !q_mean.empty(); ++k) {
        const double* row = row_at(p.k, key_index(p, b, h, k), p.d);
        double bias = dot(row, row_at(q_mean, q_head, p.d), p.d);
        if (!k_mean.empty())
          bias -= dot(row_at(k_mean, k_head, p.d), row_at(q_mean, q_head, p.d), p.d);
        out.column_bias.push_back(bias);
      }
    }
}

std::vector<Item> rows_of(const Prepared& x, int i) {
  const EstimateRule& rule = *x.predictor->estimate;
  const int n_q = x.problem->n_q, tile_q = x.predictor->tile_q;
  std::vector<Item> rows;
  for (const Item& row : items_of(rule.rows, rule.count, n_q, tile_q)) {
    const bool here =
        rule.rows == Compared::kLast ? row.first >= n_q - rule.count : row.first / tile_q == i;
    if (here) rows.push_back(row);
  }
  return rows;
}

/// The largest product that a key within the bounds can have with a query.
Logit bounded_product(const Prepared& x, std::size_t a, std::size_t b) {
  const int d = x.problem->d;
  const double *q = row_at(x.q.value, a, d), *smallest = row_at(x.k.value, b, 2 * d);
  Logit out{0, kProductError * x.q_length[a] * x.k_length[b]};
  for (int c = 0; c < d; ++c) out.value += std::max(q[c] * smallest[c], q[c] * smallest[d + c]);
  return out;
}

/// The product of two vectors and how far rounding may take it.
Logit product(const Prepared& x, std::size_t a, std::size_t b) {
  const int d = x.problem->d;
  if (x.predictor->estimate->columns == Compared::kBounds) return bounded_product(x, a, b);
  const double *q = row_at(x.q.value, a, d), *k = row_at(x.k.value, b, d);
  Logit out{dot(q, k, d), kProductError * x.q_length[a] * x.k_length[b]};
  if (x.q.slack.empty()) return out;
  const double *q_slack = row_at(x.q.slack, a, d), *k_slack = row_at(x.k.slack, b, d);
  for (int c = 0; c < d; ++c)
    out.error += std::abs(q[c]) * k_slack[c] + q_slack[c] * (std::abs(k[c]) + k_slack[c]);
  return out;
}

/// The weighted sum, over the index heads, of products that are positive.
Logit indexed_logit(const Prepared& x, int b, int q, int k) {
  const Problem& p = *x.problem;
  const EstimateRule& rule = *x.predictor->estimate;
  const IndexVectors& index = rule.index;
  const double* const key = row_at(index.k, flat_row(b, 1, 0, p.n_k, k), index.dim);
  const double key_length = std::sqrt(dot(key, key, index.dim));
  Logit sum{0, 0};
  for (int head = 0; head < index.heads; ++head) {
    const std::size_t at = flat_row(b, index.heads, head, p.n_q, q);
    const double* const query = row_at(index.q, at, index.dim);
    const double length = std::sqrt(dot(query, query, index.dim)) * key_length;
    sum.value += index.weight[at] * std::max(0.0, dot(query, key, index.dim));
    sum.error += std::abs(index.weight[at]) * kProductError * length;
  }
  return {sum.value * rule.temperature,
          sum.error * rule.temperature + kLogitError * (1 + std::abs(sum.value))};
}

Logit logit_of(const Prepared& x, int b, int h, const Item& row, const Item& column) {
  const Problem& p = *x.problem;
  const EstimateRule& rule = *x.predictor->estimate;
  if (rule.index.heads > 0) return indexed_logit(x, b, row.first, column.first);
  if (rule.from) {
    const double score = rule.temperature * rule.from(facts_of(x, b, h, row.index, column.index));
    return {score, kLogitError * (1 + std::abs(score))};
  }
  const std::size_t q0 = flat_row(b, p.n_h, h, x.q_vectors, 0);
  const std::size_t k0 = flat_row(b, p.n_h_kv, kv_head(p, h), x.k_vectors, 0);
  Logit sum{0, 0};
  if (rule.rows == Compared::kAntidiagonal) {
    for (int s = 0; s < rule.count; ++s) {
      const int q = row.first + rule.count - 1 - s, k = column.first + s;
      if (q >= p.n_q || k >= p.n_k) continue;
      const Logit one =
          product(x, q0 + static_cast<std::size_t>(q), k0 + static_cast<std::size_t>(k));
      sum.value += one.value / rule.count, sum.error += one.error / rule.count;
    }
  } else {
    sum = product(x, q0 + static_cast<std::size_t>(row.index),
                  k0 + static_cast<std::size_t>(column.index));
  }
  const auto add = [&](double bias) {
    sum.value += bias, sum.error += kProductError * std::abs(bias);
  };
  if (!x.row_bias.empty()) add(x.row_bias[query_index(p, b, h, row.first)]);
  if (!x.column_bias.empty()) add(x.column_bias[flat_row(b, p.n_h, h, p.n_k, column.first)]);
  const double scale = p.scale * rule.temperature;
  return {sum.value * scale, sum.error * scale + kLogitError};
}

bool sees(const Problem& p, int b, int h, const Item& row, const Item& column) {
  TileIndex pair;
  pair.b = b, pair.h = h;
  pair.q0 = row.first, pair.q1 = row.last, pair.k0 = column.first, pair.k1 = column.last;
  return has_visible_pair(p, pair);
}

Band log_sum_exp(const std::vector<Logit>& logits) {
  const auto sum = [&](double direction) {
    double largest = -kInfinity, total = 0;
    for (const Logit& l : logits) largest = std::max(largest, l.value + direction * l.error);
    if (largest == -kInfinity) return -kInfinity;
    for (const Logit& l : logits) total += std::exp(l.value + direction * l.error - largest);
    return largest + std::log(total);
  };
  return {sum(-1), sum(0), sum(1)};
}

Band largest_of(const std::vector<Logit>& logits) {
  Band largest{-kInfinity, -kInfinity, -kInfinity};
  for (const Logit& l : logits) {
    largest.low = std::max(largest.low, l.value - l.error);
    largest.value = std::max(largest.value, l.value);
    largest.high = std::max(largest.high, l.value + l.error);
  }
  return largest;
}

/// The exact logits of the reference keys of a query.
std::vector<Logit> reference_logits(const Prepared& x, int b, int h, int q) {
  const Problem& p = *x.problem;
  const EstimateRule& rule = *x.predictor->estimate;
  std::vector<Logit> logits;
  for (int k = 0; k < p.n_k; ++k) {
    if (!visible(p, q, k, h, b) || (rule.reference && !rule.reference(q, k))) continue;
    const double* a = row_at(p.q, query_index(p, b, h, q), p.d);
    const double* c = row_at(p.k, key_index(p, b, h, k), p.d);
    const double lengths = std::sqrt(dot(a, a, p.d) * dot(c, c, p.d));
    logits.push_back({p.scale * dot(a, c, p.d), p.scale * kProductError * lengths + kLogitError});
  }
  return logits;
}

Band normaliser(const Prepared& x, int b, int h, const Item& row,
                const std::vector<Logit>& logits) {
  const EstimateRule& rule = *x.predictor->estimate;
  if (rule.norm == Norm::kReference) return log_sum_exp(reference_logits(x, b, h, row.first));
  if (rule.norm == Norm::kSoftmax) return log_sum_exp(logits);
  if (rule.norm == Norm::kRowMax) return largest_of(logits);
  const double lse = rule.previous_lse[query_index(*x.problem, b, h, row.first)];
  return {lse, lse, lse};
}

/// The weight of a logit; kNone: the logit itself.
Band weight_of(const Logit& l, const Band& lse, Norm norm) {
  if (norm == Norm::kNone) return {l.value - l.error, l.value, l.value + l.error};
  return {std::exp(l.value - l.error - lse.high), std::exp(l.value - lse.value),
          std::exp(l.value + l.error - lse.low)};
}

void reduce(Band& into, const Band& x, Reduction reduction) {
  const bool first = into.value == -kInfinity;
  if (reduction == Reduction::kSum && !first) {
    into.low += x.low, into.value += x.value, into.high += x.high;
  } else {
    into.low = first ? x.low : std::max(into.low, x.low);
    into.value = first ? x.value : std::max(into.value, x.value);
    into.high = first ? x.high : std::max(into.high, x.high);
  }
}

/// Values between two ends, and the nominal one.
std::vector<double> corners(const Band& band) {
  if (band.low == band.high) return {band.value};
  return {band.low, band.value, band.high};
}

Band similarity_at(const std::vector<Band>& all, std::size_t index) {
  return all.empty() ? Band{} : all[index];
}

Verdict judge_exclude(const Prepared& x, const TileFacts& nominal, const Band& q, const Band& k) {
  const auto& exclude = x.predictor->estimate->exclude;
  TileFacts facts = nominal;
  facts.similar_q = q.value, facts.similar_k = k.value;
  Verdict verdict{exclude(facts), true};
  for (const double a : corners(q))
    for (const double c : corners(k)) {
      facts.similar_q = a, facts.similar_k = c;
      verdict.stable = verdict.stable && exclude(facts) == verdict.holds;
    }
  return verdict;
}

std::vector<std::uint8_t> excluded_tiles(const Prepared& x, int b, int h, int i, Row& row) {
  std::vector<std::uint8_t> excluded(static_cast<std::size_t>(x.k_tiles), 0);
  for (int j = 0; j < x.k_tiles && x.predictor->estimate->exclude; ++j) {
    const Verdict verdict = judge_exclude(x, facts_of(x, b, h, i, j), row_similarity(x, b, h, i),
                                          column_similarity(x, b, h, j));
    excluded[static_cast<std::size_t>(j)] = verdict.holds ? 1 : 0;
    row.shaken = row.shaken || !verdict.stable;
  }
  return excluded;
}

/// Adds what one row of the comparison says about every tile; false if it saw no column.
bool add_row(const Prepared& x, int b, int h, const Item& item,
             const std::vector<std::uint8_t>& excluded, Row& row) {
  const EstimateRule& rule = *x.predictor->estimate;
  std::vector<Logit> logits;
  std::vector<std::size_t> tiles;
  for (const Item& column : x.columns) {
    const auto tile = static_cast<std::size_t>(column.first / x.predictor->tile_k);
    if (excluded[tile] != 0 || !sees(*x.problem, b, h, item, column)) continue;
    logits.push_back(logit_of(x, b, h, item, column));
    tiles.push_back(tile);
    row.shaken = row.shaken || std::isnan(logits.back().value);
  }
  if (logits.empty()) return false;
  const Band lse = rule.norm == Norm::kNone ? Band{} : normaliser(x, b, h, item, logits);
  if (lse.value == -kInfinity) return true;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    reduce(row.estimate.score[tiles[c]], weight_of(logits[c], {}, Norm::kNone), rule.reduction);
    reduce(row.estimate.p[tiles[c]], weight_of(logits[c], lse, rule.norm), rule.reduction);
  }
  return true;
}

}  // namespace

Prepared prepare(const Problem& p, const Predictor& predictor) {
  Prepared out;
  out.problem = &p, out.predictor = &predictor;
  out.q_tiles = tiles_of(p.n_q, predictor.tile_q), out.k_tiles = tiles_of(p.n_k, predictor.tile_k);
  const int q_heads = p.n_b * p.n_h, k_heads = p.n_b * p.n_h_kv;
  std::vector<double> q_mean, k_mean;
  if (predictor.smooth_q) q_mean = token_means(p.q, q_heads, p.n_q, p.d);
  if (predictor.smooth_k) k_mean = token_means(p.k, k_heads, p.n_k, p.d);
  if (predictor.uses_similarity) {
    out.similar_q =
        self_similarity(p.q, q_mean, q_heads, p.n_q, p.d, predictor.tile_q, predictor.similarity);
    out.similar_k =
        self_similarity(p.k, k_mean, k_heads, p.n_k, p.d, predictor.tile_k, predictor.similarity);
  }
  if (!predictor.estimate) return out;
  const EstimateRule& rule = *predictor.estimate;
  out.columns = items_of(rule.columns, cell_tokens(rule, false), p.n_k, predictor.tile_k);
  if (rule.from || rule.index.heads > 0) return out;
  out.q = vectors_of(p.q, q_mean, q_heads, p.n_q, p.d, rule, rule.rows, predictor.tile_q,
                     {rule.bits, rule.group, std::max(predictor.tile_q, 16), true});
  out.k = vectors_of(p.k, k_mean, k_heads, p.n_k, p.d, rule, rule.columns, predictor.tile_k,
                     {rule.bits, rule.group, std::max(predictor.tile_k, 32), false});
  for (std::vector<double>* of : {&out.q.value, &out.q.slack})
    for (std::size_t n = 0; rule.takes && n < of->size(); ++n)
      if (!rule.takes(static_cast<int>(n % static_cast<std::size_t>(p.d)))) (*of)[n] = 0;
  out.q_vectors = vector_count(rule, rule.rows, true, p.n_q, predictor.tile_q);
  out.k_vectors = vector_count(rule, rule.columns, false, p.n_k, predictor.tile_k);
  out.q_length = lengths_of(out.q.value, p.d),
  out.k_length = lengths_of(out.k.value, rule.columns == Compared::kBounds ? 2 * p.d : p.d);
  if (rule.bits <= 8) add_biases(out, q_mean, k_mean);
  return out;
}

TileFacts facts_of(const Prepared& x, int b, int h, int i, int j) {
  TileFacts facts;
  facts.tile = tile_index(*x.problem, x.predictor->tile_q, x.predictor->tile_k, b, h, i, j);
  facts.n_i = x.q_tiles, facts.n_j = x.k_tiles;
  return facts;
}

Band row_similarity(const Prepared& x, int b, int h, int i) {
  return similarity_at(x.similar_q, flat_row(b, x.problem->n_h, h, x.q_tiles, i));
}
Band column_similarity(const Prepared& x, int b, int h, int j) {
  const Problem& p = *x.problem;
  return similarity_at(x.similar_k, flat_row(b, p.n_h_kv, kv_head(p, h), x.k_tiles, j));
}

Row estimate_row(const Prepared& x, int b, int h, int i, const KeptRow* within) {
  Row row;
  const auto tiles = static_cast<std::size_t>(x.k_tiles);
  for (int j = 0; j < x.k_tiles; ++j) {
    const auto tile = static_cast<std::size_t>(j);
    const bool is_in = within == nullptr || within->kept[tile] != 0;
    row.estimate.visible.push_back(has_visible_pair(*x.problem, facts_of(x, b, h, i, j).tile) &&
                                   is_in);
    row.shaken = row.shaken || (within != nullptr && within->stable[tile] == 0);
  }
  constexpr Band kNothing{-kInfinity, -kInfinity, -kInfinity};
  row.estimate.score.assign(tiles, kNothing);
  row.estimate.p.assign(tiles, kNothing);
  if (!x.predictor->estimate) return row;
  const EstimateRule& rule = *x.predictor->estimate;
  auto excluded = excluded_tiles(x, b, h, i, row);
  for (std::size_t j = 0; j < tiles && within != nullptr; ++j)
    if (within->kept[j] == 0) excluded[j] = 1;
  int rows = 0;
  for (const Item& item : rows_of(x, i)) rows += add_row(x, b, h, item, excluded, row) ? 1 : 0;
  for (Band& p : row.estimate.p) {
    if (p.value == -kInfinity && rule.norm != Norm::kNone) p = {0, 0, 0};
    if (p.value <= 0 && rule.norm != Norm::kNone && p.high == 0) continue;
    if (rule.reduction == Reduction::kSum && rows > 0)
      p.low /= rows, p.value /= rows, p.high /= rows;
    if (rule.norm != Norm::kNone && p.value < kSmallest) p.low = 0, p.high += kSmallest;
  }
  return row;
}

}  // namespace lacuna::oracle
