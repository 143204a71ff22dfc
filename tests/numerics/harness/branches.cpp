#include "tests/numerics/harness/branches.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include "tests/numerics/harness/harness.hpp"
#include "tests/oracle/order.hpp"

namespace lacuna::numerics {
namespace {

constexpr double kEmpty = -std::numeric_limits<double>::infinity();

double natural_lse(const oracle::Problem& problem, double lse) {
  return problem.lse_is_base_2 ? lse * std::numbers::ln2 : lse;
}

/// exp(lse of a branch - lse of all), row by row; `lse` becomes that of all.
std::vector<double> shares_of(const oracle::Problem& problem, const std::vector<BranchTerm>& terms,
                              std::size_t row, double& lse) {
  double largest = kEmpty, sum = 0;
  for (const BranchTerm& term : terms)
    largest = std::max(largest, natural_lse(problem, term.output.lse[row]));
  std::vector<double> shares(terms.size(), 0.0);
  if (largest == kEmpty) return shares;
  for (std::size_t n = 0; n < terms.size(); ++n)
    sum += shares[n] = std::exp(natural_lse(problem, terms[n].output.lse[row]) - largest);
  for (double& share : shares) share /= sum;
  lse = (largest + std::log(sum)) / (problem.lse_is_base_2 ? std::numbers::ln2 : 1.0);
  return shares;
}

/// Means along the tokens of [n_b, n_h_kv, n_k, width].
std::vector<double> means_of(const std::vector<double>& x, int n_k, int width, int tokens,
                             DType dtype) {
  std::vector<double> means;
  const std::size_t head = static_cast<std::size_t>(n_k) * static_cast<std::size_t>(width);
  for (std::size_t begin = 0; begin < x.size(); begin += head) {
    for (int first = 0; first < n_k; first += tokens) {
      const int end = std::min(first + tokens, n_k);
      for (int c = 0; c < width; ++c) {
        double sum = 0;
        for (int token = first; token < end; ++token)
          sum += x[begin + static_cast<std::size_t>(token * width + c)];
        means.push_back(round_to(dtype, sum / (end - first)));
      }
    }
  }
  return means;
}

/// A random number for each query and branch, passed as `gates`; one vector for each branch.
std::vector<std::vector<double>> random_gates(Variant& v, int branches, std::uint32_t seed) {
  const oracle::Problem& p = v.problem;
  const auto rows = static_cast<std::size_t>(p.n_b) * static_cast<std::size_t>(p.n_h) *
                    static_cast<std::size_t>(p.n_q);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<std::vector<double>> gates(static_cast<std::size_t>(branches));
  ParamValue param{"gates", false, {}, {p.n_b, p.n_h, p.n_q, branches}};
  for (std::size_t row = 0; row < rows; ++row)
    for (std::vector<double>& gate : gates) {
      gate.push_back(static_cast<double>(uniform(random)));
      param.values.push_back(gate.back());
    }
  v.params.push_back(std::move(param));
  return gates;
}

void take_params(Variant& v, const PredictedBranch& branch) {
  v.params.insert(v.params.end(), branch.params.begin(), branch.params.end());
}

void make_merged(JoinedVariant& joined) {
  oracle::Problem& p = joined.variant.problem;
  p.lse_is_base_2 = true;
  const int shift = p.n_k - p.n_q;
  oracle::Problem near = p, far = p;
  near.mask = [=](int q, int k, int, int) { return k <= q + shift && k > q + shift - 70; };
  far.mask = [=](int q, int k, int, int) { return k <= q + shift - 70; };
  joined.expected = join_branches(p, {{oracle_dense(near), {}}, {oracle_dense(far), {}}});
}

void make_weighted(JoinedVariant& joined, DType dtype, std::uint32_t seed) {
  const oracle::Problem& p = joined.variant.problem;
  auto gates = random_gates(joined.variant, 3, seed);
  for (double& gate : gates[2]) gate += 0.25;
  oracle::Problem scored = p;
  scored.score = [](double s, int q, int k, int, int) { return s + 0.001 * (k - q); };
  joined.expected =
      join_branches(p, {{oracle_dense(p), gates[0]},
                        {oracle_dense(problem_over_means(scored, 16, dtype)), gates[1]},
                        {oracle_dense(problem_over_means(p, 64, dtype)), gates[2]}});
}

/// The band of each row of [.., d].
std::vector<double> band_of(const std::vector<double>& x, int d, int first, int end) {
  std::vector<double> band;
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(d))
    band.insert(band.end(), x.begin() + static_cast<std::ptrdiff_t>(row) + first,
                x.begin() + static_cast<std::ptrdiff_t>(row) + end);
  return band;
}

/// sum of |weight * o| over all branches and elements, to that of the sum.
double cancellation_of(const std::vector<BranchTerm>& terms, const oracle::Output& joined) {
  double parts = 0, whole = 0;
  if (joined.lse.empty()) return 1;
  const std::size_t width = joined.o.size() / joined.lse.size();
  for (const BranchTerm& term : terms)
    for (std::size_t n = 0; n < term.output.o.size(); ++n)
      parts += std::abs(term.weight[n / width] * term.output.o[n]);
  for (const double o : joined.o) whole += std::abs(o);
  return whole == 0 ? 1 : parts / whole;
}

/// Takes `share` times the second softmax away from the first one.
void make_differential(JoinedVariant& joined) {
  const oracle::Problem& p = joined.variant.problem;
  constexpr double kShare = 0.3125;
  joined.variant.params.push_back({"share", false, {kShare}, {}});
  const std::vector<double> added(static_cast<std::size_t>(p.n_b) *
                                      static_cast<std::size_t>(p.n_h) *
                                      static_cast<std::size_t>(p.n_q),
                                  1.0);
  std::vector<double> taken(added.size(), -kShare);
  const std::vector<BranchTerm> terms = {{oracle_dense(problem_of_band(p, 0, p.d / 2)), added},
                                         {oracle_dense(problem_of_band(p, p.d / 2, p.d)), taken}};
  joined.expected = join_branches(p, terms);
  joined.cancellation = cancellation_of(terms, joined.expected);
}

/// Means of queries attend, which stand at their first token; each token gets the output of its
/// mean.
oracle::Output oracle_of_query_means(const oracle::Problem& problem, int tokens, DType dtype) {
  oracle::Problem means = problem;
  means.n_q = (problem.n_q + tokens - 1) / tokens;
  means.q = means_of(problem.q, problem.n_q, problem.d, tokens, dtype);
  if (problem.mask)
    means.mask = [=, mask = problem.mask](int q, int k, int h, int b) {
      return mask(q * tokens, k, h, b);
    };
  if (problem.score)
    means.score = [=, score = problem.score](double s, int q, int k, int h, int b) {
      return score(s, q * tokens, k, h, b);
    };
  if (problem.sink)
    means.sink = [=, sink = problem.sink](int q, int h, int b) { return sink(q * tokens, h, b); };
  const oracle::Output own = oracle_dense(means);
  const auto width = static_cast<std::ptrdiff_t>(problem.value_dim());
  oracle::Output spread;
  for (int head = 0; head < problem.n_b * problem.n_h; ++head) {
    for (int q = 0; q < problem.n_q; ++q) {
      const auto row = static_cast<std::ptrdiff_t>(head) * means.n_q + q / tokens;
      const auto add = [row](const std::vector<double>& from, std::ptrdiff_t count,
                             std::vector<double>& to) {
        to.insert(to.end(), from.begin() + row * count, from.begin() + (row + 1) * count);
      };
      add(own.o, width, spread.o), add(own.reach, width, spread.reach);
      add(own.lse, 1, spread.lse), add(own.row_margin, 1, spread.row_margin);
    }
  }
  return spread;
}

/// Means of queries over tokens, and over means, beside tokens alone.
void make_pooled(JoinedVariant& joined, DType dtype, std::uint32_t seed) {
  const oracle::Problem& p = joined.variant.problem;
  const auto gates = random_gates(joined.variant, 3, seed);
  oracle::Problem scored = p;
  scored.score = [](double s, int q, int k, int, int) { return s + 0.001 * (k - q); };
  joined.expected = join_branches(
      p, {{oracle_of_query_means(scored, 16, dtype), gates[0]},
          {oracle_dense(p), gates[1]},
          {oracle_of_query_means(problem_over_means(p, 32, dtype), 48, dtype), gates[2]}});
}

/// Softmaxes with a sink each, of tokens and of means of queries.
void make_sunk(JoinedVariant& joined, DType dtype, std::uint32_t seed) {
  oracle::Problem& p = joined.variant.problem;
  std::vector<double> level;
  for (int h = 0; h < p.n_h; ++h) level.push_back(0.5 * h - 0.25);
  joined.variant.params.push_back({"level", false, level, {p.n_h}});
  const auto gates = random_gates(joined.variant, 2, seed);
  p.sink = [level](int q, int h, int) { return level[static_cast<std::size_t>(h)] + 0.01 * q; };
  joined.expected = join_branches(
      p, {{oracle_dense(p), gates[0]}, {oracle_of_query_means(p, 16, dtype), gates[1]}});
}

/// A random order of the variant's tokens; the problem in it.
oracle::Problem reordered(Variant& v, std::uint32_t seed) {
  v.order.resize(static_cast<std::size_t>(v.problem.n_q));
  std::iota(v.order.begin(), v.order.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(v.order.begin(), v.order.end(), random);
  return ordered_problem(v);
}

/// What each query counts, which is the caller's, in the order of the computation.
std::vector<double> ordered_weights(const Variant& v, const std::vector<double>& weights) {
  std::vector<double> ordered;
  for (std::size_t first = 0; first < weights.size(); first += v.order.size())
    for (const std::int32_t token : v.order)
      ordered.push_back(weights[first + static_cast<std::size_t>(token)]);
  return ordered;
}

/// Means whose logits the caller's query sharpens; tokens that see those of the caller's window.
oracle::Problem sharp_means(const oracle::Problem& p, const std::vector<std::int32_t>& order,
                            DType dtype) {
  oracle::Problem means = problem_over_means(p, 16, dtype);
  means.score = [order](double s, int q, int, int, int) {
    return s * (1 + order[static_cast<std::size_t>(q)] % 5);
  };
  return means;
}
oracle::Problem windowed(oracle::Problem p, const std::vector<std::int32_t>& order) {
  const auto distance = [order](int q, int k) {
    return order[static_cast<std::size_t>(q)] - order[static_cast<std::size_t>(k)];
  };
  p.mask = [=](int q, int k, int, int) { return distance(q, k) >= 0 && distance(q, k) < 90; };
  p.score = [=](double s, int q, int k, int, int) { return s - 0.01 * distance(q, k); };
  return p;
}

/// Means and tokens in the caller's order; merged, or added by weights.
void make_ordered(const Case& c, std::uint32_t seed, JoinedVariant& joined) {
  joined.variant.problem.mask = {};
  const oracle::Problem p = reordered(joined.variant, seed);
  std::vector<BranchTerm> terms;
  if (c.variant == "ordered-merged") {
    terms = {{oracle_dense(p), {}}, {oracle_dense(problem_over_means(p, 8, c.dtype)), {}}};
  } else {
    const auto gates = random_gates(joined.variant, 3, seed);
    const auto gate = [&](std::size_t n) { return ordered_weights(joined.variant, gates[n]); };
    terms = {{oracle_of_query_means(problem_over_means(p, 32, c.dtype), 16, c.dtype), gate(0)},
             {oracle_dense(sharp_means(p, joined.variant.order, c.dtype)), gate(1)},
             {oracle_dense(windowed(p, joined.variant.order)), gate(2)}};
  }
  joined.expected = oracle::restored_output(p, join_branches(p, terms), joined.variant.order);
}

/// Bands that leave elements out, over tokens and over means.
void make_banded(JoinedVariant& joined, DType dtype, std::uint32_t seed) {
  const oracle::Problem& p = joined.variant.problem;
  const auto gates = random_gates(joined.variant, 2, seed);
  joined.expected = join_branches(
      p, {{oracle_dense(problem_of_band(p, 32, 96)), gates[0]},
          {oracle_dense(problem_over_means(problem_of_band(p, 0, 112), 16, dtype)), gates[1]}});
}

void make_nsa(JoinedVariant& joined, DType dtype, std::uint32_t seed,
              const PredictBranch& predict) {
  const oracle::Problem& p = joined.variant.problem;
  const auto gates = random_gates(joined.variant, 3, seed);
  constexpr int kWindow = 50;
  joined.variant.params.push_back({"window", true, {kWindow}, {}});
  const PredictedBranch selected = predict("nsa-selected");
  take_params(joined.variant, selected);
  const int shift = p.n_k - p.n_q;
  oracle::Problem window = p;
  window.mask = [=](int q, int k, int, int) { return k <= q + shift && k > q + shift - kWindow; };
  joined.expected = join_branches(p, {{oracle_dense(problem_over_means(p, 32, dtype)), gates[0]},
                                      {selected.output, gates[1]},
                                      {oracle_dense(window), gates[2]}});
}

void make_vsa(JoinedVariant& joined, DType dtype, std::uint32_t seed,
              const PredictBranch& predict) {
  oracle::Problem& p = joined.variant.problem;
  p.mask = {};
  const auto gates = random_gates(joined.variant, 2, seed);
  const PredictedBranch fine = predict("vsa-fine");
  take_params(joined.variant, fine);
  joined.expected = join_branches(
      p, {{oracle_of_query_means(problem_over_means(p, 64, dtype), 64, dtype), gates[0]},
          {fine.output, gates[1]}});
}

void join(const Case& c, std::uint32_t seed, const PredictBranch& predict, JoinedVariant& joined) {
  if (c.variant == "merged-branches")
    make_merged(joined);
  else if (c.variant == "weighted-branches")
    make_weighted(joined, c.dtype, seed);
  else if (c.variant == "pooled-branches")
    make_pooled(joined, c.dtype, seed);
  else if (c.variant == "sunk-branches")
    make_sunk(joined, c.dtype, seed);
  else if (c.variant == "differential")
    make_differential(joined);
  else if (c.variant.starts_with("ordered-"))
    make_ordered(c, seed, joined);
  else if (c.variant == "banded-branches")
    make_banded(joined, c.dtype, seed);
  else if (c.variant == "nsa")
    make_nsa(joined, c.dtype, seed, predict);
  else if (c.variant == "vsa")
    make_vsa(joined, c.dtype, seed, predict);
  else
    std::abort();  // a test names a spec without a twin
}

}  // namespace

oracle::Output join_branches(const oracle::Problem& problem, const std::vector<BranchTerm>& terms) {
  oracle::Output joined = terms.front().output;
  std::ranges::fill(joined.o, 0.0);
  std::ranges::fill(joined.lse, terms.front().weight.empty() ? kEmpty : 0.0);
  const auto width = static_cast<std::size_t>(problem.value_dim());
  for (std::size_t row = 0; row < joined.lse.size(); ++row) {
    std::vector<double> factors;
    if (terms.front().weight.empty())
      factors = shares_of(problem, terms, row, joined.lse[row]);
    else
      for (const BranchTerm& term : terms) factors.push_back(term.weight[row]);
    for (std::size_t n = 0; n < terms.size(); ++n)
      for (std::size_t c = 0; c < width; ++c)
        joined.o[row * width + c] += factors[n] * terms[n].output.o[row * width + c];
  }
  return joined;
}

oracle::Problem problem_of_band(const oracle::Problem& problem, int first, int end) {
  oracle::Problem band = problem;
  band.d = end - first;
  band.d_v = problem.value_dim();
  band.scale = static_cast<double>(static_cast<float>(1 / std::sqrt(static_cast<double>(band.d))));
  band.q = band_of(problem.q, problem.d, first, end);
  band.k = band_of(problem.k, problem.d, first, end);
  return band;
}

oracle::Problem problem_over_means(const oracle::Problem& problem, int tokens, DType dtype) {
  oracle::Problem means = problem;
  const int n_k = problem.n_k;
  means.n_k = (n_k + tokens - 1) / tokens;
  means.k = means_of(problem.k, n_k, problem.d, tokens, dtype);
  means.v = means_of(problem.v, n_k, problem.value_dim(), tokens, dtype);
  const auto last = [=](int k) { return std::min(k * tokens + tokens - 1, n_k - 1); };
  if (problem.mask)
    means.mask = [=, mask = problem.mask](int q, int k, int h, int b) {
      return mask(q, last(k), h, b);
    };
  if (problem.score)
    means.score = [=, score = problem.score](double s, int q, int k, int h, int b) {
      return score(s, q, last(k), h, b);
    };
  return means;
}

PredictedBranch predicted_branch(const Case& c, const std::string& name, std::uint32_t seed,
                                 std::optional<std::uint32_t> params_seed) {
  Case own = c;
  own.variant = name;
  TestKernel kernel(engine(), own);
  PredictedBranch branch;
  branch.tile = kernel.tile;
  branch.wrong = kernel.error;
  if (!branch.wrong.empty()) return branch;
  const Variant variant = params_seed ? make_variant(own, kernel.tile, seed, *params_seed)
                                      : make_variant(own, kernel.tile, seed);
  const Reported got = run_variant(engine(), kernel, own, variant);
  branch.wrong = got.error.empty() ? check_variant(own, variant, got, engine().is_cuda) : got.error;
  if (!branch.wrong.empty()) return branch;
  branch.output = oracle_attention(computed_problem(variant), variant.tiling, {}, got.tile_mask);
  branch.tile_mask = got.tile_mask;
  branch.params = variant.params;
  return branch;
}

JoinedVariant make_joined(const Case& c, std::uint32_t seed, const PredictBranch& predict) {
  JoinedVariant joined;
  Case plain = c;
  plain.variant = "flash-decoding";  // causal, without parameters
  joined.variant = make_variant(plain, {128, 64}, seed);
  joined.variant.spec_json = spec_text(c);
  join(c, seed, predict, joined);
  return joined;
}

void join_again(const Case& c, std::uint32_t seed, JoinedVariant& joined) {
  joined.variant.params.clear();
  join(c, seed, {}, joined);
}

}  // namespace lacuna::numerics
