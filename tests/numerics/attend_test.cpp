// Every shipped spec on the device under test against the fp64 oracle: dtypes, head dims, shapes
// and values (Fill), in two parts (harness.hpp).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/numerics/harness/harness.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {

namespace {

class Attend : public testing::TestWithParam<Case> {};

TEST_P(Attend, AgreesWithTheOracle) { EXPECT_EQ(check_case(GetParam(), 1234), ""); }

std::string name_of_case(const testing::TestParamInfo<Case>& info) { return info.param.text(); }

std::vector<DType> dtypes() {
  if (device_under_test() != "cpu") return {DType::kBF16, DType::kF16};
  return {DType::kBF16, DType::kF16, DType::kF32};
}

/// Every variant with every dtype and head dim at one ragged shape with several batches and GQA.
std::vector<Case> kinds() {
  std::vector<Case> cases;
  for (const std::string& variant : variant_names())
    for (const DType dtype : dtypes())
      for (const int d : {64, 96, 128, 256}) {
        if (d == 256 && is_quantised(variant)) continue;
        Case c{variant, dtype, d, 2, 4, 2, 161, 275, Fill::kUneven, false};
        cases.push_back(c);
      }
  return in_tier_of_kernels(cases);
}

/// Some that the CPU alone has: an odd number of vectors, and the largest; in the short tier one of
/// the two.
std::vector<Case> head_dims_of_cpu() {
  std::vector<Case> cases;
  if (device_under_test() != "cpu") return cases;
  int turn = 0;
  for (const std::string& variant : variant_names()) {
    const std::vector<int> one = {turn % 2 == 0 ? 40 : 512};
    for (const int d : test::by_tier(std::vector{40, 512}, one))
      cases.push_back({variant, dtypes()[static_cast<std::size_t>(turn++ % 3)], d, 1, 2, 1, 70, 141,
                       Fill::kUneven, false});
  }
  return cases;
}

/// Those of GPUs that are no whole panels of 64 elements, wide ones, and rows of V and O of a width
/// of their own; each variant in the short tier with one of them.
std::vector<Case> other_head_dims() {
  struct Widths {
    int d, d_v;
  };
  constexpr Widths kWidths[] = {{80, 0}, {112, 0}, {192, 0}, {192, 128}, {64, 128}};
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (const char* variant : {"dense", "window", "bsfa", "lists", "softcap"}) {
    for (std::size_t n = 0; n < std::size(kWidths); ++n) {
      if (!test::by_tier(true, n == turn % std::size(kWidths))) continue;
      Case c{variant, dtypes()[turn % 2], kWidths[n].d, 2, 4, 2, 161,
             275,     Fill::kUneven,      n % 2 == 1};
      c.d_v = kWidths[n].d_v;
      cases.push_back(c);
    }
    ++turn;
  }
  return cases;
}

/// Rows of O that warps share, V a part of K among them: prompts and single queries.
std::vector<Case> wide_heads() {
  std::vector<Case> cases;
  for (const char* variant : {"v-of-k", "latent-index", "window", "softcap", "row-sink"}) {
    for (const auto& [n_q, n_k] : {std::pair(161, 275), std::pair(1, 700), std::pair(70, 70)}) {
      const std::string name = variant;
      if (!test::by_tier(true, name == "v-of-k" || n_q == 1)) continue;
      Case c{name,
             dtypes()[cases.size() % 2],
             name == "softcap" ? 512 : 576,
             1,
             4,
             1,
             n_q,
             n_k,
             Fill::kUneven,
             cases.size() % 2 == 1};
      if (c.d == 576) c.d_v = 512;
      cases.push_back(c);
    }
  }
  return cases;
}

/// Formulas of tokens that are computed in another order: one tile, several, and a part of one.
std::vector<Case> ordered_tokens() {
  std::vector<Case> cases;
  for (const int n : {40, 200, 333})
    cases.push_back({"ordered-tokens", dtypes()[cases.size() % 2], 64, 2, 4, 2, n, n, Fill::kUneven,
                     cases.size() % 2 == 1});
  return cases;
}

/// Every variant at the lengths where tiles begin, end and are missing. In the short tier with
/// kernels that are there: kinds() has a variant's other head dims.
std::vector<Case> shapes() {
  struct Shape {
    int n_q, n_k;
  };
  const Shape shapes[] = {{1, 1},     {15, 15},   {63, 63},   {64, 64},   {65, 65},
                          {127, 127}, {128, 128}, {129, 129}, {1, 300},   {300, 1},
                          {40, 500},  {500, 40},  {257, 129}, {129, 257}, {333, 700}};
  std::vector<Case> cases;
  int turn = 0;
  for (const std::string& variant : variant_names())
    for (const Shape& s : shapes) {
      Case c{variant,
             dtypes()[static_cast<std::size_t>(turn % 2)],
             test::by_tier(turn % 3 == 0 ? 64 : 128, turn % 2 ? 96 : 64),
             1,
             turn % 2 ? 4 : 1,
             1,
             s.n_q,
             s.n_k,
             Fill::kUneven,
             turn % 4 == 1};
      ++turn;
      cases.push_back(c);
    }
  return cases;
}

std::vector<Case> layouts() {
  std::vector<Case> cases;
  for (const std::string& variant : variant_names()) {
    // In the short tier with kernels that are there.
    const auto [wide, narrow] =
        test::by_tier(std::pair(DType::kF16, DType::kBF16), std::pair(DType::kBF16, DType::kF16));
    const int d = test::by_tier(128, 64);
    cases.push_back({variant, wide, d, 3, 8, 1, 130, 140, Fill::kUneven, true});
    cases.push_back({variant, narrow, 96, 2, 6, 6, 70, 70, Fill::kUneven, true});
  }
  return cases;
}

/// Rows of lists that have 64 queries, in even and odd number; lists in many words of 32 tiles.
std::vector<Case> narrow_lists() {
  std::vector<Case> kinds;
  for (const std::string& variant : narrow_list_names())
    for (const int d : {64, 96, 128, 256}) {
      if (d == 256 && is_quantised(variant)) continue;
      kinds.push_back({variant, DType::kBF16, d, 2, 4, 2, 161, 275, Fill::kUneven, false});
      kinds.push_back({variant, DType::kF16, d, 1, 2, 1, 255, 130, Fill::kNormal, true});
    }
  std::vector<Case> cases = in_tier_of_kernels(kinds);
  const int d = test::by_tier(128, 64);  // as the long lists'
  for (const std::string& variant : narrow_list_names()) {
    for (const int n : {1, 64, 65, 128, 129, 320})
      cases.push_back({variant, DType::kBF16, d, 1, 4, 2, n, n + 7, Fill::kUneven, false});
    cases.push_back({variant, DType::kBF16, 64, 1, 2, 1, 400, 5003, Fill::kUneven, false});
    for (const Fill fill :
         {Fill::kZero, Fill::kHuge, Fill::kNegative, Fill::kOutlier, Fill::kSharp, Fill::kRising})
      cases.push_back({variant, DType::kBF16, d, 1, 2, 1, 200, 300, fill, false});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(NarrowLists, Attend, testing::ValuesIn(narrow_lists()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Kinds, Attend, testing::ValuesIn(kinds()), name_of_case);
INSTANTIATE_TEST_SUITE_P(CpuHeadDims, Attend, testing::ValuesIn(head_dims_of_cpu()), name_of_case);
INSTANTIATE_TEST_SUITE_P(OtherHeadDims, Attend, testing::ValuesIn(other_head_dims()), name_of_case);
INSTANTIATE_TEST_SUITE_P(WideHeads, Attend, testing::ValuesIn(wide_heads()), name_of_case);
INSTANTIATE_TEST_SUITE_P(OrderedTokens, Attend, testing::ValuesIn(ordered_tokens()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Shapes, Attend, testing::ValuesIn(shapes()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Values, Attend, testing::ValuesIn(value_cases(variant_names())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Layouts, Attend, testing::ValuesIn(layouts()), name_of_case);

/// A scale that comes with the launch takes the place of the spec's, also in what a predictor
/// estimates; the kernel stays the same.
TEST(Attend, ALaunchMayBringItsScale) {
  int turn = 0;
  const std::vector<std::string> some = {"dense", "softcap", "bsfa",
                                         "lists", "sparge",  "xattention"};
  for (const std::string& name : test::by_tier(all_names(), some)) {
    const Case c{name, DType::kBF16, 64, 1, 4, 2, 161, 275, Fill::kUneven, false};
    if (spec_text(c).find("\"permute\"") != std::string::npos) continue;  // fields of other sizes
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile, 321);
    const double factor = turn++ % 2 == 0 ? 0.55 : 1.7;
    variant.softmax_scale = static_cast<float>(variant.problem.scale * factor);
    variant.problem.scale = variant.softmax_scale;
    EXPECT_EQ(
        check_variant(c, variant, run_variant(engine(), kernel, c, variant), engine().is_cuda), "")
        << name;
  }
}

/// A NaN in a query row hurts that row alone.
TEST(Attend, NanInAQueryRowStaysThere) {
  for (const std::string& name : variant_names()) {
    const Case c{name, DType::kBF16, 64, 1, 2, 1, 150, 150, Fill::kNormal, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile, 77);
    const std::size_t row = 101;
    variant.problem.q[row * 64 + 3] = std::numeric_limits<double>::quiet_NaN();
    const Reported got = run_variant(engine(), kernel, c, variant);
    ASSERT_EQ(got.error, "");
    for (std::size_t x = 0; x < got.o.size(); ++x)
      ASSERT_TRUE(x / 64 == row || !std::isnan(got.o[x])) << name << ", row " << x / 64;
  }
}

/// The same input gives the same bits, run after run. In the short tier of what
/// Pipeline.ReportsChangeNothing does not run twice.
TEST(Attend, RunsAreBitIdentical) {
  std::vector<std::string> names = test::by_tier(variant_names(), {});
  names.insert(names.end(), narrow_list_names().begin(), narrow_list_names().end());
  for (const std::string& name : names) {
    const int d = test::by_tier(128, 64), n = test::by_tier(700, 400);
    const Case c{name, DType::kBF16, d, 1, 4, 2, n, n, Fill::kUneven, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    const Variant variant = make_variant(c, kernel.tile, 5);
    const Reported first = run_variant(engine(), kernel, c, variant);
    ASSERT_EQ(first.error, "");
    for (int run = 0; run < test::by_tier(5, 1); ++run) {
      const Reported again = run_variant(engine(), kernel, c, variant);
      EXPECT_EQ(first.o, again.o) << name;
      EXPECT_EQ(first.lse, again.lse) << name;
      EXPECT_EQ(first.tile_mask, again.tile_mask) << name;
    }
  }
}

/// Gates do their work on the uneven inputs: a test in which nothing is gated shows nothing.
TEST(Attend, GatesSkipSomethingAndNotEverything) {
  for (const char* name : {"bsfa", "skip-softmax", "warp-gate"}) {
    const Case c{name, DType::kBF16, 128, 1, 2, 1, 1000, 1000, Fill::kUneven, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    const Variant variant = make_variant(c, kernel.tile, 9);
    const Reported got = run_variant(engine(), kernel, c, variant);
    ASSERT_EQ(got.error, "");
    std::int64_t visited = 0, gated = 0;
    for (std::size_t x = 0; x < got.counts.size(); x += 3)
      visited += got.counts[x + 1], gated += got.counts[x + 2];
    EXPECT_GT(gated, visited / 20) << name;
    EXPECT_LT(gated, visited) << name;
  }
}

}  // namespace
}  // namespace lacuna::numerics
