#include "tests/runtime/cpu/interpreter_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace lacuna {
namespace {

constexpr double kReferenceInfinity = std::numeric_limits<double>::infinity();

/// One query row: keys it attends to are collected with two flags, then summed up in one go.
struct Row {
  double running_max = -kReferenceInfinity;
  std::vector<double> logits;    ///< of all keys; -inf: not visible
  std::vector<bool> in_sum;      ///< counts in the denominator
  std::vector<bool> in_product;  ///< counts in the product with V
};

class Head {
 public:
  Head(const Shape& shape, const ReferenceMethod& method, const float* q, const float* k,
       const float* v, int b, int h)
      : shape_(shape), method_(method), q_(q), k_(k), v_(v), b_(b), h_(h) {}

  void run(int i, double* o, double* lse, std::uint8_t* tiles, int* counts) {
    const int q0 = i * method_.tile_q, q1 = std::min(q0 + method_.tile_q, shape_.n_q) - 1;
    const int k_tiles = (shape_.n_k + method_.tile_k - 1) / method_.tile_k;
    std::vector<Row> rows;
    for (int q = q0; q <= q1; ++q) rows.push_back(start_row(q));
    bool first = true;
    for (int step = 0; step < k_tiles; ++step) {
      const int j = method_.descending ? k_tiles - 1 - step : step;
      const TileBounds tile{
          i, j, q0, q1, j * method_.tile_k, std::min((j + 1) * method_.tile_k, shape_.n_k) - 1};
      const bool visible = any_visible(tile);
      counts[0] += visible ? 1 : 0;
      if (!(method_.listed ? method_.listed(h_, i, j) : visible)) continue;
      tiles[j] = visit(tile, first, rows);
      counts[1] += 1;
      counts[2] += tiles[j] == 2 ? 1 : 0;
      first = false;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::size_t q = static_cast<std::size_t>(q0) + r;
      finish(rows[r], o + q * static_cast<std::size_t>(shape_.d), lse[q]);
    }
  }

 private:
  bool is_visible(int q, int k) const { return !method_.mask || method_.mask(q, k, h_, b_); }

  bool any_visible(const TileBounds& t) const {
    for (int q = t.q0; q <= t.q1; ++q) {
      for (int k = t.k0; k <= t.k1; ++k) {
        if (is_visible(q, k)) return true;
      }
    }
    return false;
  }

  Row start_row(int q) const {
    Row row;
    const auto n_k = static_cast<std::size_t>(shape_.n_k);
    row.logits.assign(n_k, -kReferenceInfinity);
    row.in_sum.assign(n_k, false);
    row.in_product.assign(n_k, false);
    for (int k = 0; k < shape_.n_k; ++k) {
      if (!is_visible(q, k)) continue;
      double s = 0;
      for (int c = 0; c < shape_.d; ++c) s += double{q_[q * shape_.d + c]} * k_[k * shape_.d + c];
      s /= std::sqrt(shape_.d);
      row.logits[static_cast<std::size_t>(k)] = method_.score ? method_.score(s, q, k, h_, b_) : s;
    }
    return row;
  }

  static double tile_max(const Row& row, const TileBounds& tile) {
    return *std::max_element(row.logits.begin() + tile.k0, row.logits.begin() + tile.k1 + 1);
  }

  std::uint8_t visit(const TileBounds& tile, bool first, std::vector<Row>& rows) {
    const int count = static_cast<int>(rows.size());
    const int scope = method_.gate ? method_.gate->scope_rows : count;
    bool all_gated = true;
    for (int begin = 0; begin < count; begin += scope) {
      const std::span<Row> group(rows.data() + begin,
                                 static_cast<std::size_t>(std::min(scope, count - begin)));
      const bool gated = !first && is_gated(tile, group);
      all_gated = all_gated && gated;
      for (Row& row : group) take(row, tile, !gated || !method_.gate->skips_exp, !gated);
    }
    return all_gated ? 2 : 1;
  }

  bool is_gated(const TileBounds& tile, std::span<const Row> group) const {
    if (!method_.gate) return false;
    double largest = -kReferenceInfinity, gap = -kReferenceInfinity;
    for (const Row& row : group) {
      const double row_max = tile_max(row, tile);
      if (row_max == -kReferenceInfinity) continue;
      largest = std::max(largest, row_max);
      gap = std::max(gap, row_max - row.running_max);
    }
    return method_.gate->skips(largest, gap, h_, tile);
  }

  static void take(Row& row, const TileBounds& tile, bool in_sum, bool in_product) {
    if (!in_sum) return;
    row.running_max = std::max(row.running_max, tile_max(row, tile));
    for (int k = tile.k0; k <= tile.k1; ++k) {
      row.in_sum[static_cast<std::size_t>(k)] = true;
      row.in_product[static_cast<std::size_t>(k)] = in_product;
    }
  }

  void finish(const Row& row, double* o, double& lse) const {
    std::fill(o, o + shape_.d, 0.0);
    lse = -kReferenceInfinity;
    if (row.running_max == -kReferenceInfinity) return;
    double sum = 0;
    for (std::size_t k = 0; k < row.logits.size(); ++k) {
      const double p = std::exp(row.logits[k] - row.running_max);
      if (row.in_sum[k]) sum += p;
      if (!row.in_product[k] || p == 0) continue;
      for (int c = 0; c < shape_.d; ++c) {
        o[c] += p * v_[static_cast<int>(k) * shape_.d + c];
      }
    }
    for (int c = 0; c < shape_.d; ++c) o[c] /= sum;
    lse = row.running_max + std::log(sum);
  }

  const Shape& shape_;
  const ReferenceMethod& method_;
  const float *q_, *k_, *v_;
  int b_, h_;
};

}  // namespace

ReferenceResult reference_attention(const Shape& shape, const ReferenceMethod& method,
                                    const std::vector<float>& q, const std::vector<float>& k,
                                    const std::vector<float>& v) {
  const int q_tiles = (shape.n_q + method.tile_q - 1) / method.tile_q;
  const int k_tiles = (shape.n_k + method.tile_k - 1) / method.tile_k;
  const auto size = [](int a, int b, int c, int d) {
    return static_cast<std::size_t>(a * b * c * d);
  };
  ReferenceResult result;
  result.o.resize(size(shape.b, shape.h, shape.n_q, shape.d));
  result.lse.resize(size(shape.b, shape.h, shape.n_q, 1));
  result.tiles.resize(size(shape.b, shape.h, q_tiles, k_tiles));
  result.counts.resize(size(shape.b, shape.h, q_tiles, 3));
  for (int b = 0; b < shape.b; ++b) {
    for (int h = 0; h < shape.h; ++h) {
      const int head = b * shape.h + h;
      const int head_kv = b * shape.h_kv + h / (shape.h / shape.h_kv);
      Head work(shape, method, q.data() + size(head, shape.n_q, shape.d, 1),
                k.data() + size(head_kv, shape.n_k, shape.d, 1),
                v.data() + size(head_kv, shape.n_k, shape.d, 1), b, h);
      for (int i = 0; i < q_tiles; ++i) {
        const std::size_t row = size(head, q_tiles, 1, 1) + static_cast<std::size_t>(i);
        work.run(i, result.o.data() + size(head, shape.n_q, shape.d, 1),
                 result.lse.data() + size(head, shape.n_q, 1, 1),
                 result.tiles.data() + row * static_cast<std::size_t>(k_tiles),
                 result.counts.data() + row * 3);
      }
    }
  }
  return result;
}

}  // namespace lacuna
