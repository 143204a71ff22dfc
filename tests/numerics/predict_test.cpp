// Every shipped spec with a predictor on the device under test: kept tiles against the fp64
// predictor, then the output under the kept tiles; dtypes, head dims, predicted_shapes and values
// (Fill).
#include <gtest/gtest.h>

#include "tests/numerics/harness/harness.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {

namespace {

class Predicted : public testing::TestWithParam<Case> {};

TEST_P(Predicted, AgreesWithTheOracle) { EXPECT_EQ(check_case(GetParam(), 4321), ""); }

std::string name_of_predicted(const testing::TestParamInfo<Case>& info) {
  return info.param.text();
}

bool needs_equal_lengths(const std::string& variant) { return variant == "sparge-video"; }

/// Every variant with every dtype and head dim at one ragged shape with several batches and GQA.
std::vector<Case> predicted_kinds() {
  std::vector<Case> cases;
  for (const std::string& variant : predicted_names())
    for (const DType dtype : {DType::kBF16, DType::kF16})
      for (const int d : {64, 128, 256}) {
        if (d == 256 && (is_quantised(variant) || dtype == DType::kF16)) continue;
        const int n_q = needs_equal_lengths(variant) ? 275 : 161;
        cases.push_back({variant, dtype, d, 2, 4, 2, n_q, 275, Fill::kClustered, false});
      }
  return in_tier_of_kernels(cases);
}

/// Every variant at the lengths where tiles begin, end and are missing; one, four or eight query
/// heads to a KV head.
std::vector<Case> predicted_shapes() {
  struct Shape {
    int n_q, n_k;
  };
  const Shape predicted_shapes[] = {{1, 1},     {15, 15},   {63, 63},   {64, 64},     {65, 65},
                                    {127, 127}, {128, 128}, {129, 129}, {1000, 1000}, {1, 300},
                                    {300, 1},   {40, 500},  {500, 40}};
  std::vector<Case> cases;
  int turn = 0;
  for (const std::string& variant : predicted_names())
    for (const Shape& s : predicted_shapes) {
      if (s.n_q != s.n_k && needs_equal_lengths(variant)) continue;
      const bool is_long = s.n_q + s.n_k > 1000;
      const int heads = is_long ? 2 : turn % 3 == 0 ? 1 : turn % 3 == 1 ? 4 : 8;
      const Fill fill = turn % 2 ? Fill::kClustered : Fill::kUneven;
      const DType dtype =
          turn % 2 && !(is_long && test::is_short_tier()) ? DType::kF16 : DType::kBF16;
      // In the short tier with kernels that are there: predicted_kinds() has the others.
      const bool is_large = test::by_tier(turn % 5 == 0, dtype == DType::kF16) && !is_long;
      const int d = is_large ? 128 : 64;
      cases.push_back({variant, dtype, d, 1, heads, 1, s.n_q, s.n_k, fill, turn % 4 == 1});
      ++turn;
    }
  for (const char* variant : test::by_tier(
           std::vector{"sparge", "sale", "fg-attn-pooled", "streaming"}, {"fg-attn-pooled"}))
    cases.push_back(
        {variant, DType::kBF16, 64, 1, 1, 1, 4097, 4097, Fill::kClustered, /*token_major=*/false});
  return cases;
}

/// Few queries of many keys: pooled estimates have scores of few rows
/// (templates/select/pooled/row_scores.cuh), blocks share the keys of cells
/// (templates/select/cells/cell_shares.cuh), others go through long rows.
std::vector<Case> predicted_few_queries() {
  const std::vector<std::string> names =
      test::by_tier(predicted_names(), {"topk-blocks", "quest", "sparge", "twilight", "moba-blocks",
                                        "bands", "shared-heads", "columns-pooled", "relmax",
                                        "xattention", "subblock", "uneven-cells"});
  std::vector<Case> cases;
  for (const std::string& variant : names) {
    if (needs_equal_lengths(variant)) continue;
    cases.push_back({variant, DType::kBF16, 64, 1, 8, 2, 1, 8200, Fill::kClustered, false});
    cases.push_back({variant, DType::kF16, 64, 2, 2, 1, 130, 8300, Fill::kClustered, true});
  }
  // So many that cells of all rows exist, or all but some.
  for (const char* variant : {"relmax", "xattention", "subblock", "uneven-cells"})
    cases.push_back({variant, DType::kBF16, 128, 2, 4, 2, 50, 4200, Fill::kUneven, true});
  return cases;
}

std::vector<Case> predicted_layouts() {
  std::vector<Case> cases;
  for (const std::string& variant : predicted_names()) {
    cases.push_back({variant, DType::kF16, 128, 3, 8, 1, 140, 140, Fill::kClustered, true});
    cases.push_back({variant, DType::kBF16, 64, 2, 6, 6, 70, 70, Fill::kUneven, true});
  }
  return cases;
}

/// Bands of the head dimension that only heads of one width have.
std::vector<Case> predicted_bands() {
  return {{"prism", DType::kBF16, 128, 1, 2, 1, 300, 420, Fill::kClustered, false},
          {"prism", DType::kF16, 128, 2, 2, 2, 129, 700, Fill::kNormal, true}};
}

/// Tiles of the predictor of 512 queries: attend's are shorter.
std::vector<Case> long_tiles() {
  return {{"long-tiles", DType::kBF16, 64, 1, 2, 1, 1100, 1400, Fill::kClustered, false},
          {"long-tiles", DType::kF16, 128, 1, 1, 1, 300, 300, Fill::kUneven, true}};
}

INSTANTIATE_TEST_SUITE_P(LongTiles, Predicted, testing::ValuesIn(long_tiles()), name_of_predicted);
INSTANTIATE_TEST_SUITE_P(Bands, Predicted, testing::ValuesIn(predicted_bands()), name_of_predicted);
INSTANTIATE_TEST_SUITE_P(Kinds, Predicted, testing::ValuesIn(predicted_kinds()), name_of_predicted);
INSTANTIATE_TEST_SUITE_P(Shapes, Predicted, testing::ValuesIn(predicted_shapes()),
                         name_of_predicted);
INSTANTIATE_TEST_SUITE_P(FewQueries, Predicted, testing::ValuesIn(predicted_few_queries()),
                         name_of_predicted);
INSTANTIATE_TEST_SUITE_P(Values, Predicted, testing::ValuesIn(value_cases(predicted_names())),
                         name_of_predicted);
INSTANTIATE_TEST_SUITE_P(Layouts, Predicted, testing::ValuesIn(predicted_layouts()),
                         name_of_predicted);

/// A test of decisions in which all of them are near a threshold, or all the same, shows nothing.
TEST(Predicted, DecisionsDifferAndAlmostAllAreStable) {
  for (const std::string& name : predicted_names()) {
    const int n = name == "radial" ? 1200 : 600;
    const Case c{name, DType::kBF16, 64, 1, 4, 2, n, n, Fill::kClustered, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    const Variant variant = make_variant(c, kernel.tile, 11);
    const auto kept = oracle::oracle_kept(variant.problem, *variant.predictor);
    const auto tiles = expected_tiles(variant, kept);
    std::size_t visited = 0, stable = 0;
    for (std::size_t x = 0; x < tiles.visited.size(); ++x)
      visited += tiles.visited[x], stable += tiles.stable[x];
    EXPECT_GT(visited, tiles.visited.size() / 20) << name;
    EXPECT_LT(visited, tiles.visited.size() * 49 / 50) << name;
    EXPECT_GT(stable, tiles.stable.size() * 98 / 100) << name;
  }
}

/// Decided once, used for new tensors until the count is full, then decided again.
TEST(Predicted, ASelectionCarriesTheDecision) {
  const Case c{"fg-attn-cached", DType::kBF16, 64, 1, 4, 2, 200, 200, Fill::kClustered, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  Variant first = make_variant(c, kernel.tile, 21);
  Binding binding(engine().is_cuda, c, first);
  ASSERT_EQ(binding.provide(kernel, c), "");
  ASSERT_NE(binding.args.selection, nullptr);
  Variant decided = first;
  for (int launch = 0; launch <= first.reuse; ++launch) {
    Variant fresh = first;
    fresh.problem = make_variant(c, kernel.tile, 30U + static_cast<unsigned>(launch)).problem;
    if (launch % first.reuse == 0) decided = fresh;
    if (launch > 2 && launch < first.reuse) {  // the middle of the period, unseen
      ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
      continue;
    }
    binding.rewrite(c, fresh.problem);
    binding.poison();
    ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
    EXPECT_EQ(check_variant(c, fresh, binding.collect(), engine().is_cuda, &decided), "")
        << "launch " << launch;
  }
  EXPECT_EQ(binding.selection.calls, 1);
}

TEST(Predicted, WithoutASelectionEveryLaunchDecides) {
  const Case c{"fg-attn-cached", DType::kBF16, 64, 1, 2, 1, 150, 150, Fill::kClustered, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  for (const std::uint32_t seed : {1U, 2U}) {
    Variant variant = make_variant(c, kernel.tile, seed);
    variant.reuse = 1;
    EXPECT_EQ(
        check_variant(c, variant, run_variant(engine(), kernel, c, variant), engine().is_cuda), "");
  }
}

}  // namespace
}  // namespace lacuna::numerics
