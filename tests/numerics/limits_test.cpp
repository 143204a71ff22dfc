// The ends of the parameter ranges of each method: where a method is dense, where nothing is
// left, and what a NaN may hurt.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {
namespace {

struct Setting {
  std::string name;
  double value;
};

/// Runs `variant` with some parameters fixed to one number for all elements.
Reported run_with(const Case& c, const std::vector<Setting>& settings, Variant& variant,
                  std::uint32_t seed = 3) {
  TestKernel kernel(engine(), c);
  Reported failed;
  failed.error = kernel.error;
  if (!failed.error.empty()) return failed;
  variant = make_variant(c, kernel.tile, seed);
  for (const Setting& s : settings)
    for (ParamValue& p : variant.params)
      if (p.name == s.name) p.values = {s.value}, p.shape = {};
  return run_variant(engine(), kernel, c, variant);
}

Case case_of(const std::string& variant) {
  return {variant, DType::kBF16, 64, 1, 4, 2, 300, 300, Fill::kClustered, false};
}

/// How many tiles the report says were visible, visited and gated.
struct Totals {
  std::int64_t visible = 0, visited = 0, gated = 0;
};
Totals totals_of(const Reported& got) {
  Totals out;
  for (std::size_t x = 0; x + 2 < got.counts.size(); x += 3)
    out.visible += got.counts[x], out.visited += got.counts[x + 1], out.gated += got.counts[x + 2];
  return out;
}

/// At the dense end every visible tile is visited and the output is that of dense attention.
void expect_dense(const std::string& name, const std::vector<Setting>& settings) {
  SCOPED_TRACE(name);
  const Case c = case_of(name);
  Variant variant;
  const Reported got = run_with(c, settings, variant);
  ASSERT_EQ(got.error, "");
  const Totals totals = totals_of(got);
  EXPECT_GT(totals.visible, 0);
  EXPECT_EQ(totals.visited, totals.visible);
  EXPECT_EQ(totals.gated, 0);
  const OutputError error = compare_output(variant, oracle::oracle_dense(variant.problem), got, 0);
  const bool quantised = is_quantised(name);
  const Tolerance allowed = quantised ? exact_tolerance_of(variant.quantisation)
                                      : tolerance_of(c.dtype, variant.problem, engine().is_cuda);
  EXPECT_EQ(error.mismatch, "");
  EXPECT_LE(error.rel_l1, allowed.rel_l1);
  EXPECT_LE(error.rel_max, allowed.rel_max);
}

TEST(Limits, EachMethodHasADenseEnd) {
  expect_dense("sparge", {{"tau", 1}, {"theta", -1}, {"lambda", -50}});
  expect_dense("sparge", {{"tau", 0.5}, {"theta", 1}, {"lambda", -50}});
  expect_dense("sparge-topk", {{"ratio", 1}, {"lambda", -50}});
  expect_dense("sparge-video", {{"tau", 1}, {"theta", -1}, {"lambda", -50}});
  expect_dense("sale", {{"tau", 0}});
  expect_dense("topk-blocks", {{"blocks", 1000}});
  expect_dense("minference-block", {{"blocks", 1000}});
  expect_dense("moba-blocks", {{"chunks", 1000}});
  expect_dense("flexprefill", {{"gamma", 0.5}, {"budget", 1 << 20}});
  expect_dense("streaming", {{"sink", 0}, {"window", 1 << 20}});
  expect_dense("radial", {{"frame", 1 << 20}, {"reach", 0}});
  expect_dense("minference-vertical-slash", {{"vertical", 1 << 20}, {"slash", 0}});
  expect_dense("fg-attn-pooled", {{"c", 0}});
  expect_dense("fg-attn-cached", {{"c", 0}});
}

/// Visited tiles of each work tile.
std::vector<int> row_counts(const Reported& got) {
  std::vector<int> out;
  for (std::size_t x = 0; x + 2 < got.counts.size(); x += 3) out.push_back(got.counts[x + 1]);
  return out;
}

TEST(Limits, SpargeAtTauZeroKeepsOneTilePerRow) {
  Variant variant;
  const Reported got =
      run_with(case_of("sparge"), {{"tau", 0}, {"theta", -1}, {"lambda", -50}}, variant);
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(row_counts(got), std::vector<int>(4 * 3, 1));
}

TEST(Limits, TopkKeepsOneAtRatioZero) {
  Variant variant;
  const Reported got = run_with(case_of("sparge-topk"), {{"ratio", 0}, {"lambda", -50}}, variant);
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(row_counts(got), std::vector<int>(4 * 3, 1));
}

TEST(Limits, AnEmptyListGivesZeroAndMinusInfinity) {
  struct Empty {
    const char* variant;
    Setting setting;
  };
  for (const Empty& x :
       {Empty{"minference-block", {"blocks", 0}}, Empty{"fg-attn-cached", {"c", 1e9}},
        Empty{"fg-attn-pooled", {"c", 1e9}}}) {
    SCOPED_TRACE(x.variant);
    Variant variant;
    const Reported got = run_with(case_of(x.variant), {x.setting}, variant);
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(totals_of(got).visited, 0);
    for (const double o : got.o) ASSERT_EQ(o, 0);
    for (const double lse : got.lse) ASSERT_EQ(lse, -std::numeric_limits<double>::infinity());
  }
}

TEST(Limits, SaleAtAnInfiniteTauIsSinkAndWindow) {
  Variant variant;
  Case c = case_of("sale");
  c.n_q = c.n_k = 700;
  const Reported got = run_with(c, {{"tau", std::numeric_limits<double>::infinity()}}, variant);
  ASSERT_EQ(got.error, "");
  TestKernel kernel(engine(), c);
  const int q_tiles = (c.n_q + kernel.tile.q - 1) / kernel.tile.q;
  const int k_tiles = (c.n_k + kernel.tile.k - 1) / kernel.tile.k;
  for (int row = 0; row < c.n_h * q_tiles; ++row)
    for (int j = 0; j < k_tiles; ++j) {
      const int q0 = row % q_tiles * kernel.tile.q, q1 = std::min(q0 + kernel.tile.q, c.n_q) - 1;
      const int k0 = j * kernel.tile.k, k1 = std::min(k0 + kernel.tile.k, c.n_k) - 1;
      // The predictor's tiles are 64 x 32.
      const bool kept = k0 / 32 == 0 || q0 / 64 * 64 - std::min(k1 / 32 * 32 + 31, c.n_k - 1) < 128;
      EXPECT_EQ(got.tile_mask[static_cast<std::size_t>(row * k_tiles + j)] != 0, kept && k0 <= q1)
          << row << ", " << j;
    }
}

/// A NaN in a query row leaves every other row a number, and the rows of other tiles untouched.
TEST(Limits, NanInAQueryRowStaysThere) {
  for (const std::string& name : predicted_names()) {
    SCOPED_TRACE(name);
    const Case c = case_of(name);
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile, 7);
    const std::size_t row = 101, d = 64;
    variant.problem.q[row * d + 3] = std::numeric_limits<double>::quiet_NaN();
    const Reported got = run_variant(engine(), kernel, c, variant);
    ASSERT_EQ(got.error, "");
    for (std::size_t x = 0; x < got.o.size(); ++x)
      ASSERT_TRUE(x / d == row || !std::isnan(got.o[x])) << "row " << x / d;
  }
}

}  // namespace
}  // namespace lacuna::numerics
