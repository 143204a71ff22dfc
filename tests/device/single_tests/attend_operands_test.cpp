// attend on quantised and on gathered operands, and the preparation of e4m3 values, against scalar
// code; hand-configured kernels on emulated blocks.
#include <bit>
#include <cmath>

#include "tests/device/single_tests/attend_reference.hpp"

namespace single {
void PrintTo(const AttendVariant& variant, std::ostream* out);  // found by GoogleTest
void PrintTo(const AttendVariant& variant, std::ostream* out) { *out << variant.name; }
}  // namespace single

namespace lacuna::device {
namespace {

using single::AttendVariant;

/// All blocks of a launch; gathering ones are persistent, so three take all rows in turns.
std::string launch(const AttendVariant& variant, const AttendProblem& problem,
                   const emulation::Schedule& schedule = kPlainSchedule) {
  const int rows = problem.shape.n_b * problem.shape.n_h * problem.q_tiles;
  const int blocks = variant.choice.gathers ? std::min(rows, 3) : rows;
  for (int block = 0; block < blocks; ++block) {
    std::string fault =
        emulation::run_block({variant.kernel, &problem.args, block, variant.choice.tile_q * 2,
                              variant.smem_bytes, blocks},
                             schedule);
    if (!fault.empty()) return fault;
  }
  return "";
}

AttendResults results_of(const AttendProblem& problem) {
  const auto& s = problem.shape;
  AttendResults results;
  for (int b = 0; b < s.n_b; ++b)
    for (int h = 0; h < s.n_h; ++h)
      for (int token = 0; token < s.n_q; ++token)
        for (int x = 0; x < problem.choice.head_dim; ++x)
          results.o.push_back(problem.o.at(b, h, token, x));
  for (std::size_t n = 0; n < problem.lse.size(); ++n) results.lse.push_back(problem.lse[n]);
  for (std::size_t n = 0; n < problem.counts.size(); ++n)
    results.counts.push_back(problem.counts[n]);
  for (std::size_t n = 0; n < problem.tile_mask.size(); ++n)
    results.tile_mask.push_back(problem.tile_mask[n]);
  EXPECT_TRUE(problem.lse.is_margin_intact() && problem.counts.is_margin_intact() &&
              problem.tile_mask.is_margin_intact() && problem.gathered.is_margin_intact());
  return results;
}

/// Attention of the tensors themselves: nothing rounded, gated or left out but by the mask.
AttendResults exact_attention(const AttendProblem& problem) {
  AttendResults results;
  const auto& s = problem.shape;
  const int d = problem.choice.head_dim, group = s.n_h / s.n_h_kv;
  for (int row = 0; row < s.n_b * s.n_h * s.n_q; ++row) {
    const int b = row / (s.n_h * s.n_q), h = row / s.n_q % s.n_h, q_token = row % s.n_q;
    double sum = 0;
    std::vector<double> output(static_cast<std::size_t>(d));
    for (int key = 0; key < s.n_k; ++key) {
      if (!problem.is_visible(q_token, key)) continue;
      double product = 0;
      for (int x = 0; x < d; ++x)
        product += static_cast<double>(problem.q.at(b, h, q_token, x)) *
                   problem.k.at(b, h / group, key, x);
      const double weight = std::exp(product * problem.args.attend.scale);
      sum += weight;
      for (int x = 0; x < d; ++x)
        output[static_cast<std::size_t>(x)] += weight * problem.v.at(b, h / group, key, x);
    }
    results.lse.push_back(std::log(sum));
    for (const double x : output) results.o.push_back(sum > 0 ? x / sum : 0);
  }
  return results;
}

struct Tolerance {
  double mean, largest;  ///< sum |difference| / sum |expected|, max |difference| / max |expected|
};

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 const Tolerance& tolerance) {
  double difference = 0, sum = 0, largest = 0, largest_expected = 0;
  for (std::size_t n = 0; n < got.size(); ++n) {
    const double d = std::fabs(got[n] - expected[n]);
    difference += d;
    sum += std::fabs(expected[n]);
    largest = d > largest || std::isnan(d) ? d : largest;
    largest_expected = std::max(largest_expected, std::fabs(expected[n]));
  }
  EXPECT_LE(difference, tolerance.mean * sum) << difference / sum;
  EXPECT_LE(largest, tolerance.largest * largest_expected) << largest / largest_expected;
}

void expect_lse(const std::vector<double>& got, const std::vector<double>& expected,
                double tolerance) {
  for (std::size_t n = 0; n < got.size(); ++n) {
    if (std::isinf(expected[n])) {
      EXPECT_EQ(got[n], expected[n]) << n;
    } else {
      EXPECT_NEAR(got[n], expected[n], tolerance) << n;
    }
  }
}

/// What the output may differ by if everything is rounded as it should be: 16-bit results, weights
/// next to a rounding boundary.
Tolerance tolerance_of(const single::AttendChoice& choice) {
  const Tolerance rounding = choice.is_bf16 ? Tolerance{4e-3, 8e-3} : Tolerance{5e-4, 1e-3};
  const double flips = choice.v_bits == 8 ? 3 : 1;
  return {rounding.mean * flips, rounding.largest * flips};
}

const AttendShapeOf kShapes[] = {{2, 4, 2, 1, 1},     {1, 2, 1, 15, 17},  {1, 2, 2, 65, 129},
                                 {1, 2, 1, 129, 65},  {1, 1, 1, 1, 300},  {2, 2, 1, 130, 300},
                                 {1, 4, 1, 200, 256}, {1, 2, 1, 300, 300}};

class Attend : public testing::TestWithParam<AttendVariant> {};

TEST_P(Attend, AgreesWithScalarCode) {
  for (const AttendShapeOf& shape : kShapes) {
    SCOPED_TRACE(shape.text());
    const AttendProblem problem(GetParam().choice, shape, 31);
    ASSERT_EQ(launch(GetParam(), problem), "");
    const AttendResults got = results_of(problem), expected = reference(problem);
    EXPECT_EQ(got.counts, expected.counts);
    EXPECT_EQ(got.tile_mask, expected.tile_mask);
    expect_near(got.o, expected.o, tolerance_of(GetParam().choice));
    expect_lse(got.lse, expected.lse, 1e-4);
  }
}

TEST_P(Attend, GivesTheSameBitsUnderAnySchedule) {
  const AttendShapeOf shape = {1, 2, 1, 140, 300};
  const AttendProblem plain(GetParam().choice, shape, 32);
  ASSERT_EQ(launch(GetParam(), plain), "");
  const AttendResults expected = results_of(plain);
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    const AttendProblem other(GetParam().choice, shape, 32);
    ASSERT_EQ(launch(GetParam(), other, schedule), "");
    EXPECT_TRUE(results_of(other) == expected);
  }
}

TEST_P(Attend, ComputesTheSameInAnyOrderOfRowsAndWithoutReports) {
  const AttendShapeOf shape = {1, 2, 1, 300, 200};
  const AttendProblem plain(GetParam().choice, shape, 33);
  AttendProblem ordered(GetParam().choice, shape, 33);
  std::vector<int> order;
  for (int n = 0; n < 2 * ordered.q_tiles; ++n) order.push_back(n);
  std::ranges::shuffle(order, std::mt19937(5));
  ordered.args.attend.row_order = order.data();
  ASSERT_EQ(launch(GetParam(), plain), "");
  ASSERT_EQ(launch(GetParam(), ordered), "");
  const AttendResults expected = results_of(plain);
  EXPECT_TRUE(results_of(ordered) == expected);
  AttendProblem bare(GetParam().choice, shape, 33);
  bare.args.attend.counts = nullptr, bare.args.attend.tile_mask = nullptr;
  bare.args.attend.lse.data = nullptr;
  ASSERT_EQ(launch(GetParam(), bare), "");
  EXPECT_TRUE(results_of(bare).o == expected.o);
}

const auto kNameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Quantised, Attend, testing::ValuesIn(single::quantised_variants()),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Gathered, Attend, testing::ValuesIn(single::gathering_variants()),
                         kNameOf);

/// A test of gates in which nothing is gated, or everything, shows nothing.
TEST(QuantisedAttend, GatesSkipSomethingAndNotEverything) {
  for (const AttendVariant& variant : single::quantised_variants()) {
    if (variant.choice.skips == single::Skips::kNothing) continue;
    const AttendProblem problem(variant.choice, {1, 2, 1, 300, 300}, 31);
    ASSERT_EQ(launch(variant, problem), "");
    int visited = 0, gated = 0;
    for (std::size_t n = 0; n < problem.counts.size(); n += 3)
      visited += problem.counts[n + 1], gated += problem.counts[n + 2];
    EXPECT_GT(gated, 0) << variant.name;
    EXPECT_LT(gated, visited) << variant.name;
  }
}

TEST(QuantisedAttend, IsCloseToAttentionOfTheTensorsThemselves) {
  for (const AttendVariant& variant : single::quantised_variants()) {
    const auto& choice = variant.choice;
    if (choice.skips != single::Skips::kNothing || choice.has_score || choice.has_row_bias ||
        choice.has_column_bias)
      continue;
    SCOPED_TRACE(variant.name);
    const AttendProblem problem(choice, {1, 2, 1, 200, 300}, 34);
    ASSERT_EQ(launch(variant, problem), "");
    const AttendResults exact = exact_attention(problem), got = results_of(problem);
    expect_near(got.o, exact.o, choice.v_bits == 8 ? Tolerance{6e-2, 8e-2} : Tolerance{2e-2, 3e-2});
    expect_lse(got.lse, exact.lse, 0.05);
  }
}

TEST(QuantisedAttend, ReturnsZeroInAChannelOfZeros) {
  for (const AttendVariant& variant : single::quantised_variants()) {
    if (variant.choice.v_bits != 8) continue;
    const AttendProblem problem(variant.choice, {1, 1, 1, 70, 130}, 35);
    ASSERT_EQ(launch(variant, problem), "");
    for (int token = 0; token < 70; ++token) EXPECT_EQ(problem.o.at(0, 0, token, 5), 0);
  }
}

TEST(GatheredAttend, ReturnsZeroAndMinusInfinityWhereNothingIsKept) {
  for (const AttendVariant& variant : single::gathering_variants()) {
    AttendProblem problem(variant.choice, {1, 2, 1, 150, 90}, 36);
    std::ranges::fill(problem.kept, 0U);
    ASSERT_EQ(launch(variant, problem), "");
    const AttendResults got = results_of(problem);
    for (const double x : got.o) ASSERT_EQ(x, 0);
    for (const double x : got.lse) ASSERT_EQ(x, -std::numeric_limits<double>::infinity());
  }
}

TEST(GatheredAttend, TakesAnyNumberOfKeys) {
  const AttendVariant& variant = single::gathering_variants()[2];
  for (int n = 1; n <= 300; n += 23) {
    SCOPED_TRACE(n);
    const AttendProblem problem(variant.choice, {1, 2, 1, n, n}, 37);
    ASSERT_EQ(launch(variant, problem), "");
    const AttendResults got = results_of(problem), expected = reference(problem);
    EXPECT_EQ(got.tile_mask, expected.tile_mask);
    expect_near(got.o, expected.o, tolerance_of(variant.choice));
  }
}

TEST(PrepareValues, WritesCodesInTheOrderOfTheProduct) {
  for (const single::ValuesVariant& variant : single::values_variants()) {
    for (const int n : {1, 63, 64, 65, 300}) {
      SCOPED_TRACE(testing::Message() << "d " << variant.head_dim << ", n " << n);
      single::AttendChoice choice;
      choice.head_dim = variant.head_dim, choice.is_bf16 = variant.is_bf16, choice.v_bits = 8;
      AttendProblem problem(choice, {2, 4, 2, 1, n}, 38);
      const std::vector<unsigned char> expected = problem.v_values;
      Guarded<unsigned char> codes(expected.size());
      problem.args.predict.v_values = codes.data();
      ASSERT_EQ(run_single(variant.kernel, problem.args, 2 * 2 * problem.k_padded / 128, 36864),
                "");
      EXPECT_TRUE(codes.is_margin_intact());
      std::size_t differing = 0;
      for (std::size_t x = 0; x < expected.size(); ++x) differing += codes[x] != expected[x];
      EXPECT_EQ(differing, 0U);
    }
  }
}

}  // namespace
}  // namespace lacuna::device
