#include "tests/numerics/harness/unseen.hpp"

#include <algorithm>
#include <limits>

#include "tests/numerics/variants/variant_parts.hpp"
#include "tests/oracle/access.hpp"

namespace lacuna::numerics {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kInfiniteChannel = 5;

/// Calls set(element, number of the token, channel) for the tokens' elements in every head.
template <class Set>
void for_elements(Variant& variant, const Poison& poison, Set set) {
  oracle::Problem& p = variant.problem;
  std::vector<double>& tensor = poison.in_v ? p.v : p.k;
  for (int head = 0; head < p.n_b * p.n_h_kv; ++head)
    for (std::size_t n = 0; n < poison.tokens.size(); ++n)
      for (int c = 0; c < p.d; ++c) {
        const std::size_t row = oracle::flat_row(0, 1, head, p.n_k, poison.tokens[n]);
        set(tensor[row * static_cast<std::size_t>(p.d) + static_cast<std::size_t>(c)], n, c);
      }
}

/// Does a predictor look into keys?
bool estimates(const Variant& variant) {
  return variant.predictor && (variant.predictor->estimate || variant.predictor->uses_similarity);
}

struct Comparing {
  const Variant& variant;
  const Poison& poison;
  Promise promise;
  const Reported& clean;
  const Reported& poisoned;
  int q_tiles, k_tiles;

  std::size_t work_tile_index(int b, int h, int i) const {
    return oracle::flat_row(b, variant.problem.n_h, h, q_tiles, i);
  }
  bool visits(int b, int h, int i, int token) const {
    const auto j = static_cast<std::size_t>(token / variant.tiling.tile_k);
    return clean.tile_mask[work_tile_index(b, h, i) * static_cast<std::size_t>(k_tiles) + j] != 0;
  }
  /// Has the token a say in the row? In V, if the row's tiles visit it; in K, also if the predictor
  /// asks whether they should.
  bool sees(int b, int h, int q, int token) const {
    return oracle::visible(variant.problem, q, token, h, b) &&
           (visits(b, h, q / variant.tiling.tile_q, token) || (!poison.in_v && estimates(variant)));
  }
  /// What one of them sees in K concerns them all.
  int rows_together() const {
    const int tile_q = variant.tiling.tile_q;
    if (poison.in_v) return promise.unvisited ? std::max(promise.rows_together, tile_q) : 1;
    int rows = std::max(promise.rows_together, variant.gate ? tile_q : 1);
    if (!estimates(variant)) return rows;
    const bool asks_last =
        variant.predictor->estimate && variant.predictor->estimate->rows == oracle::Compared::kLast;
    return asks_last ? variant.problem.n_q : std::max({rows, tile_q, variant.predictor->tile_q});
  }
  bool is_unaware(int b, int h, int q) const {
    const int first = q / rows_together() * rows_together();
    for (int row = first; row < std::min(first + rows_together(), variant.problem.n_q); ++row)
      for (const int token : poison.tokens)
        if (sees(b, h, row, token) ||
            (promise.unvisited && visits(b, h, row / variant.tiling.tile_q, token)))
          return false;
    return true;
  }

  /// What of a row's output, or of its work tile's reports, is not the same.
  std::string difference(int b, int h, int q) const {
    const auto d = static_cast<std::size_t>(variant.problem.d);
    const std::size_t row = oracle::query_index(variant.problem, b, h, q);
    const std::string name = " of batch " + std::to_string(b) + ", head " + std::to_string(h) +
                             ", query " + std::to_string(q);
    for (std::size_t x = row * d; x < (row + 1) * d; ++x)
      if (clean.o[x] != poisoned.o[x])
        return "o" + name + ": expected " + std::to_string(clean.o[x]) + ", got " +
               std::to_string(poisoned.o[x]);
    if (clean.lse[row] != poisoned.lse[row])
      return "lse" + name + ": expected " + std::to_string(clean.lse[row]) + ", got " +
             std::to_string(poisoned.lse[row]);
    const int i = q / variant.tiling.tile_q;
    for (int j = 0; j < k_tiles; ++j) {
      const std::size_t at = work_tile_index(b, h, i) * static_cast<std::size_t>(k_tiles) +
                             static_cast<std::size_t>(j);
      // Only work tiles no row of which sees a token decide as before.
      if (rows_together() > 1 && clean.tile_mask[at] != poisoned.tile_mask[at])
        return "tile_mask" + name + ", tile " + std::to_string(j);
    }
    return "";
  }
};

}  // namespace

Variant cleared(Variant variant, const std::vector<int>& tokens) {
  for (const bool in_v : {false, true})
    for_elements(variant, {in_v, tokens}, [](double& x, std::size_t, int) { x = 0; });
  return variant;
}

Variant poisoned(Variant variant, const Poison& poison) {
  for_elements(variant, poison, [](double& x, std::size_t n, int c) {
    x = n == 0 ? kNan : n > 1 ? -kInfinity : c == kInfiniteChannel ? kInfinity : 0;
  });
  return variant;
}

UnseenComparison compare_unseen(const Variant& variant, const Poison& poison,
                                const Promise& promise, const Reported& clean,
                                const Reported& poisoned) {
  UnseenComparison result;
  result.difference = clean.error + poisoned.error;
  if (!result.difference.empty()) return result;
  const oracle::Problem& p = variant.problem;
  const Comparing comparing{variant,
                            poison,
                            promise,
                            clean,
                            poisoned,
                            oracle::tiles_of(p.n_q, variant.tiling.tile_q),
                            oracle::tiles_of(p.n_k, variant.tiling.tile_k)};
  for (int b = 0; b < p.n_b; ++b)
    for (int h = 0; h < p.n_h; ++h)
      for (int q = 0; q < p.n_q && result.difference.empty(); ++q) {
        if (!comparing.is_unaware(b, h, q)) continue;
        ++result.rows;
        result.difference = comparing.difference(b, h, q);
      }
  return result;
}

void poison_behind_the_last_key(Binding& binding, const Case& c, const Variant& variant) {
  constexpr int kMore = 130;  // any tile's rest
  const auto extend = [&](const std::vector<double>& values) {
    const std::size_t head = values.size() / static_cast<std::size_t>(c.n_b * c.n_h_kv);
    std::vector<double> longer;
    for (auto from = values.begin(); from != values.end();
         from += static_cast<std::ptrdiff_t>(head)) {
      longer.insert(longer.end(), from, from + static_cast<std::ptrdiff_t>(head));
      for (int x = 0; x < kMore * c.d; ++x) longer.push_back(x % 2 == 0 ? kNan : kInfinity);
    }
    Tensor tensor = binding.tensors.upload(longer, c.dtype, {c.n_b, c.n_h_kv, c.n_k + kMore, c.d},
                                           c.token_major);
    tensor.view()->shape[2] = c.n_k;
    return tensor;
  };
  binding.k = extend(variant.problem.k);
  binding.v = extend(variant.problem.v);
  binding.args.k = binding.k.view(), binding.args.v = binding.v.view();
}

}  // namespace lacuna::numerics
