// Conditions that are the same everywhere, against brute force.
#include "compiler/expr/bounds/decided.hpp"

#include <gtest/gtest.h>

#include "tests/expr/random_expr.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

using test::ProblemSize;
using test::Random;
using test::random_parameters;

const std::vector<ParamSymbol> kParams = {
    {"w", ExprType::kI32, {}, false},
    {"tau", ExprType::kF32, {}, false},
    {"t", ExprType::kF32, {ParamAxis::kNK}, false},
    {"group", ExprType::kI32, {ParamAxis::kNQ}, false},
};

std::string found(const char* text, Site site = Site::kMask) {
  const ParsedExpr parsed = parse_expr(text, site, kParams);
  if (!parsed.ok()) return parsed.errors[0].message;
  const std::optional<bool> value = decided(parsed.expr, ReadRanges(parsed.expr));
  return !value ? "open" : *value ? "always" : "never";
}

TEST(decided, comparisons_of_one_sum_are_seen_together) {
  EXPECT_EQ(found("k <= q or q < k"), "always");
  EXPECT_EQ(found("k > q and k < q"), "never");
  EXPECT_EQ(found("k > q + w and 2 * k - k - w <= q"), "never");
  EXPECT_EQ(found("not (k - q >= w) or q + w <= k"), "always");
  EXPECT_EQ(found("(k <= q) == (q >= k)"), "always");
  EXPECT_EQ(found("select(k < q, k <= q, k >= q)"), "always");
  EXPECT_EQ(found("q - k < 3 and q - k > 1"), "open");  // 2
  EXPECT_EQ(found("q - k < 3 and q - k > 2"), "never");
  EXPECT_EQ(found("group[q] == 1 and group[q] == 2"), "never");
  EXPECT_EQ(found("group[q] == 1 and group[q + 1] == 2"), "open");
  EXPECT_EQ(found("k % 4 == 4"), "never");
  EXPECT_EQ(found("k // 4 * 4 <= k"), "open");  // another term
}

TEST(decided, what_is_known_of_variables_counts) {
  EXPECT_EQ(found("0 <= k and k < n_k"), "always");
  EXPECT_EQ(found("k < n_q"), "open");
  EXPECT_EQ(found("k >= n_k + 1"), "never");
  EXPECT_EQ(found("k <= n_k - 2"), "open");
  EXPECT_EQ(found("q0 <= q1 and j < n_j", Site::kKeep), "always");
  EXPECT_EQ(found("q0 + 1 <= q1", Site::kKeep), "open");
  EXPECT_EQ(found("rank < visible", Site::kKeep), "always");
  EXPECT_EQ(found("2 * rank < visible + visible", Site::kKeep), "always");
  EXPECT_EQ(found("rank + w < visible", Site::kKeep), "open");
}

TEST(decided, f32) {
  EXPECT_EQ(found("t[k] < tau or t[k] >= tau"), "always");
  EXPECT_EQ(found("t[k] < tau or t[k] > tau"), "open");
  EXPECT_EQ(found("t[k] < 0.5 and t[k] > 0.25"), "open");
  EXPECT_EQ(found("t[k] < 0.25 and 0.5 < t[k]"), "never");
  EXPECT_EQ(found("t[k] / tau < 1 or t[k] / tau >= 1"), "open");  // NaN
  EXPECT_EQ(found("t[k] / tau < 1 and t[k] / tau >= 1"), "never");
  EXPECT_EQ(found("abs(t[k]) >= 0.0"), "always");
  EXPECT_EQ(found("tanh(t[k]) < 2.0"), "open");               // NaN
  EXPECT_EQ(found("1.0 + abs(t[k]) * 1e-30 > 1.0"), "open");  // rounds to 1
  EXPECT_EQ(found("q / 4 == k / 4"), "open");
}

TEST(decided, ranges_of_parameters_count) {
  const ParsedExpr parsed = parse_expr("k - k < w or tau > 2.0", Site::kMask, kParams);
  ReadRanges ranges(parsed.expr);
  EXPECT_EQ(decided(parsed.expr, ranges), std::nullopt);
  ranges.parameters[0] = {1, 100};
  EXPECT_EQ(decided(parsed.expr, ranges), true);
  ranges.parameters[0] = {-100, 0};
  ranges.parameters[1] = {-1, 1};
  EXPECT_EQ(decided(parsed.expr, ranges), false);
}

TEST(decided, many_sums_are_open) {
  std::string text = "group[q] == 0";
  for (int n = 1; n < 20; ++n) {
    text += " or group[q + ";
    text += std::to_string(n) + "] == 0";
  }
  EXPECT_EQ(found((text + " or k >= 0").c_str()), "open");
  EXPECT_EQ(found("group[q] == 0 or k >= 0"), "always");
}

TEST(decided, is_sound_for_random_masks) {
  Random random(12);
  const ProblemSize size{1, 2, 12, 14};
  int known = 0;
  const int count = test::draws(20000);
  for (int n = 0; n < count; ++n) {
    const auto set = random_parameters(random, size, false);
    const std::string text = test::RandomExpr(random, Site::kMask, set.symbols).text(1 + n % 5);
    const ParsedExpr parsed = parse_expr(text, Site::kMask, set.symbols);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.errors[0].message;
    const std::optional<bool> value = decided(parsed.expr, ReadRanges(parsed.expr));
    if (!value) continue;
    known += parsed.expr.nodes.size() > 1;
    Bindings bindings;
    bindings.parameters = set.views;
    bindings.set(Variable::kNQ, size.n_q);
    bindings.set(Variable::kNK, size.n_k);
    bindings.set(Variable::kNH, size.heads);
    for (int q = 0; q < size.n_q; ++q)
      for (int k = 0; k < size.n_k; ++k) {
        bindings.set(Variable::kQ, q);
        bindings.set(Variable::kK, k);
        ASSERT_EQ(evaluate(parsed.expr, bindings).boolean, *value) << text << " " << q << " " << k;
      }
  }
  EXPECT_GT(known, count / 100) << "some random masks should be the same everywhere";
}

}  // namespace
}  // namespace lacuna
