// Permutation, statistics, summaries, similarity and quantisation on the CPU against plain double
// arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "runtime/base/fp8.hpp"
#include "runtime/cpu/ops/ops.hpp"
#include "tests/runtime/cpu/predict_problem.hpp"

namespace lacuna {
namespace {

using namespace predict;

constexpr float kPrepareInfinity = std::numeric_limits<float>::infinity();

/// The mean of each channel over tokens [begin, end).
std::vector<double> mean_of(const Array& x, HeadIndex head, int begin, int end) {
  std::vector<double> mean(static_cast<std::size_t>(x.width()));
  for (int n = begin; n < end; ++n) {
    for (int c = 0; c < x.width(); ++c) {
      mean[static_cast<std::size_t>(c)] += double{*at<float>(x, head, n, c)} / (end - begin);
    }
  }
  return mean;
}

TEST(PredictMean, IsTakenOverAllTokensOfAHead) {
  const PredictProblem problem({2, 4, 2, 37, 61, 8});
  const Array x = problem.keys(), mean = token_mean(x, 3);
  for (std::int64_t item = 0; item < x.head_count(); ++item) {
    const HeadIndex head = head_at(x, item);
    const std::vector<double> expected = mean_of(x, head, 0, x.tokens());
    for (int c = 0; c < x.width(); ++c) {
      EXPECT_NEAR(*at<float>(mean, head, c), expected[static_cast<std::size_t>(c)], 1e-7);
    }
  }
}

TEST(PredictMean, NaNCountsAsZeroAndStaysWithItsToken) {
  PredictProblem problem({1, 1, 1, 1, 4, 8});
  for (std::size_t n = 0; n < 4; ++n) problem.k[n * 8 + 2] = static_cast<float>(n);
  problem.k[3 * 8 + 2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(*at<float>(token_mean(problem.keys(), 1), {0, 0}, 2), 0.75F);
}

TEST(PredictProject, GivesBackWhatSmoothingTookFromTheLogits) {
  const PredictProblem problem({2, 4, 2, 9, 13, 8});
  const Array q = problem.queries(), k = problem.keys();
  const Array q_mean = token_mean(q, 1), k_mean = token_mean(k, 1);
  const Array row_bias = project(q, nullptr, k_mean, 4, 2);
  const Array column_bias = project(k, &k_mean, q_mean, 4, 2);
  ASSERT_EQ(column_bias.heads(), 4) << "one for each query head";
  std::vector<float> a(8), c(8);
  for (std::int64_t item = 0; item < q.head_count(); ++item) {
    const HeadIndex head = head_at(q, item), kv_head = head_of(k, head, 4);
    for (int n = 0; n < 9; ++n) {
      for (int m = 0; m < 13; ++m) {
        load_centred(q, at<float>(q_mean, head, 0), head, n, a.data());
        load_centred(k, at<float>(k_mean, kv_head, 0), kv_head, m, c.data());
        const double smoothed = dot(a.data(), c.data(), 8) + double{*at<float>(row_bias, head, n)} +
                                double{*at<float>(column_bias, head, m)};
        EXPECT_NEAR(smoothed, dot(at<float>(q, head, n), at<float>(k, kv_head, m), 8), 1e-5);
      }
    }
  }
}

TEST(PredictSummarise, RaggedTilesArePooledOverTheirRealTokens) {
  const PredictProblem problem({2, 2, 2, 37, 61, 8});
  const Array x = problem.keys(), mean = token_mean(x, 1);
  const Array plain = summarise(x, nullptr, 16, 2), smoothed = summarise(x, &mean, 16, 2);
  ASSERT_EQ(plain.tokens(), 4);
  for (std::int64_t item = 0; item < x.head_count(); ++item) {
    const HeadIndex head = head_at(x, item);
    for (int t = 0; t < 4; ++t) {
      const auto expected = mean_of(x, head, t * 16, std::min(t * 16 + 16, 61));
      for (int c = 0; c < 8; ++c) {
        const double value = expected[static_cast<std::size_t>(c)];
        EXPECT_NEAR(*at<float>(plain, head, t, c), value, 1e-6);
        EXPECT_NEAR(*at<float>(smoothed, head, t, c), value - double{*at<float>(mean, head, c)},
                    1e-6);
      }
    }
  }
}

/// The mean of the Gram matrix of a tile's tokens that are not zero, entry by entry.
double gram_similarity(const Array& x, int begin, int end, SimilarityForm form) {
  std::vector<const float*> rows;
  for (int n = begin; n < end; ++n) {
    const float* row = at<float>(x, {0, 0}, n);
    if (dot(row, row, x.width()) > 0) rows.push_back(row);
  }
  double sum = 0, largest = 0;
  for (const float* a : rows) {
    for (const float* b : rows) {
      const double entry = dot(a, b, x.width());
      const double lengths = std::sqrt(dot(a, a, x.width()) * dot(b, b, x.width()));
      sum += form == SimilarityForm::kCosine ? entry / lengths : entry;
      largest = std::max(largest, std::abs(entry));
    }
  }
  const auto count = static_cast<double>(rows.size());
  return sum / (count * count) / (form == SimilarityForm::kCosine ? 1.0 : largest);
}

TEST(PredictSimilarity, EqualsTheMeanOfTheGramMatrixWithoutZeroTokens) {
  PredictProblem problem({1, 1, 1, 50, 50, 8});
  for (int n : {3, 4, 49}) std::fill_n(problem.k.begin() + n * 8, 8, 0.0F);
  const Array x = problem.keys();
  for (const SimilarityForm form : {SimilarityForm::kCosine, SimilarityForm::kGramMax}) {
    const Array similar = similarity(x, nullptr, 16, form, 2);
    for (int t = 0; t < 4; ++t) {
      EXPECT_NEAR(*at<float>(similar, {0, 0}, t),
                  gram_similarity(x, t * 16, std::min(t * 16 + 16, 50), form), 1e-6)
          << t;
    }
  }
}

TEST(PredictSimilarity, OfOneTokenIsOneAndOfNoneUndefined) {
  PredictProblem problem({1, 1, 1, 1, 33, 8});
  std::fill_n(problem.k.begin(), 16 * 8, 0.0F);
  const Array similar = similarity(problem.keys(), nullptr, 16, SimilarityForm::kCosine, 1);
  EXPECT_EQ(*at<float>(similar, {0, 0}, 0), -kPrepareInfinity);
  EXPECT_NEAR(*at<float>(similar, {0, 0}, 2), 1.0F, 1e-6);
}

TEST(PredictQuantise, GroupsFollowTheFragmentsOfTheMma) {
  EXPECT_EQ(group_of_token(QuantGroup::kBlock, true, 64, 130), 2);
  EXPECT_EQ(group_of_token(QuantGroup::kWarp, true, 64, 64 + 17), 4 + 1);
  EXPECT_EQ(group_of_token(QuantGroup::kWarp, false, 64, 64 + 17), 1);
  for (int row = 0; row < 64; ++row) {
    EXPECT_EQ(group_of_token(QuantGroup::kThread, true, 64, 64 + row), 32 + row / 16 * 8 + row % 8);
    EXPECT_EQ(group_of_token(QuantGroup::kThread, false, 64, 64 + row),
              8 + row / 32 * 4 + row % 8 / 2);
  }
}

TEST(PredictQuantise, IntegersTimesScaleAreWithinHalfAStepOfTheInput) {
  const PredictProblem problem({2, 2, 1, 75, 101, 16});
  for (const bool is_query : {true, false}) {
    const Array x = is_query ? problem.queries() : problem.keys(), mean = token_mean(x, 1);
    for (const int bits : {8, 4}) {
      for (const QuantGroup group : {QuantGroup::kBlock, QuantGroup::kWarp, QuantGroup::kThread}) {
        const Quantised result = quantise(x, &mean, Quantise{-1, -1, bits, group, 32}, is_query, 2);
        const int range = bits == 8 ? 127 : 7;
        std::vector<float> row(16);
        for (std::int64_t item = 0; item < x.head_count(); ++item) {
          const HeadIndex head = head_at(x, item);
          std::vector<int> largest(200);
          for (int n = 0; n < x.tokens(); ++n) {
            load_centred(x, at<float>(mean, head, 0), head, n, row.data());
            const float scale = *at<float>(result.scales, head, n);
            for (int c = 0; c < 16; ++c) {
              const int integer = *at<std::int8_t>(result.values, head, n, c);
              EXPECT_NEAR(static_cast<float>(integer) * scale, row[static_cast<std::size_t>(c)],
                          0.5001F * scale);
              int& most = largest[static_cast<std::size_t>(group_of_token(group, is_query, 32, n))];
              most = std::max(most, std::abs(integer));
            }
          }
          for (int n = 0; n < x.tokens(); ++n) {
            EXPECT_EQ(largest[static_cast<std::size_t>(group_of_token(group, is_query, 32, n))],
                      range)
                << "the largest of every group uses the whole range";
          }
        }
      }
    }
  }
}

TEST(PredictQuantise, RoundsHalfAwayFromZeroAndAllZeroGroupsHaveScaleOne) {
  PredictProblem problem({1, 1, 1, 1, 48, 8});
  std::fill(problem.k.begin(), problem.k.end(), 0.0F);
  const float values[] = {127, 0.5F, -0.5F, 1.5F, -2.5F, 0.49F, -127, 126.5F};
  std::copy(std::begin(values), std::end(values), problem.k.begin() + 16 * 8);
  const Quantise op{-1, -1, 8, QuantGroup::kBlock, 16};
  const Quantised result = quantise(problem.keys(), nullptr, op, false, 1);
  EXPECT_EQ(*at<float>(result.scales, {0, 0}, 0), 1.0F);
  EXPECT_EQ(*at<float>(result.scales, {0, 0}, 16), 1.0F);
  const int expected[] = {127, 1, -1, 2, -3, 0, -127, 127};
  for (int c = 0; c < 8; ++c) {
    EXPECT_EQ(*at<std::int8_t>(result.values, {0, 0}, 16, c), expected[c]) << c;
    EXPECT_EQ(*at<std::int8_t>(result.values, {0, 0}, 5, c), 0);
  }
}

TEST(PredictQuantise, NaNBecomesZeroAndDoesNotReachItsGroup) {
  PredictProblem problem({1, 1, 1, 1, 16, 8});
  problem.k[3] = std::numeric_limits<float>::quiet_NaN();
  const Quantise op{-1, -1, 8, QuantGroup::kBlock, 16};
  const Quantised result = quantise(problem.keys(), nullptr, op, false, 1);
  EXPECT_EQ(*at<std::int8_t>(result.values, {0, 0}, 0, 3), 0);
  EXPECT_TRUE(std::isfinite(*at<float>(result.scales, {0, 0}, 0)));
}

TEST(PredictQuantiseValues, OneScaleForEachChannel) {
  PredictProblem problem({2, 2, 2, 1, 70, 8});
  for (int n = 0; n < 70; ++n) problem.v[static_cast<std::size_t>(n) * 8 + 5] = 0;
  const Array x = problem.values();
  const Quantised result = quantise_values(x, 448, 2);
  EXPECT_EQ(*at<float>(result.scales, {0, 0}, 5), 1.0F) << "an all-zero channel";
  for (std::int64_t item = 0; item < x.head_count(); ++item) {
    const HeadIndex head = head_at(x, item);
    for (int c = 0; c < 8; ++c) {
      float largest = 0;
      for (int n = 0; n < 70; ++n) largest = std::max(largest, std::abs(*at<float>(x, head, n, c)));
      const float scale = *at<float>(result.scales, head, c);
      EXPECT_FLOAT_EQ(scale, largest > 0 ? largest / 448 : 1.0F);
      for (int n = 0; n < 70; ++n) {
        const float code = e4m3_to_f32(*at<std::uint8_t>(result.values, head, n, c));
        const float exact = *at<float>(x, head, n, c) / scale;
        EXPECT_NEAR(code, exact, std::max(0x1p-10F, std::abs(exact) / 16)) << "half a step";
      }
    }
  }
}

TEST(E4M3, EveryCodeReadsBackAndHalfwayPointsGoToTheEvenOne) {
  std::set<float> values;
  for (int code = 0; code < 0x7f; ++code) {
    const float value = e4m3_to_f32(static_cast<std::uint8_t>(code));
    EXPECT_EQ(f32_to_e4m3(value), code);
    EXPECT_EQ(f32_to_e4m3(-value), code | 0x80);
    EXPECT_TRUE(values.insert(value).second);
  }
  EXPECT_EQ(*values.rbegin(), 448.0F);
  EXPECT_EQ(*std::next(values.begin()), 0x1p-9F);
  for (int code = 0; code < 0x7e; ++code) {
    const float low = e4m3_to_f32(static_cast<std::uint8_t>(code));
    const float high = e4m3_to_f32(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(f32_to_e4m3(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 1e9F)), code + 1);
  }
}

TEST(E4M3, SaturatesAndKeepsNaN) {
  EXPECT_EQ(f32_to_e4m3(1e9F), 0x7e);
  EXPECT_EQ(f32_to_e4m3(464), 0x7e);
  EXPECT_EQ(f32_to_e4m3(-kPrepareInfinity), 0xfe);
  EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3(std::nanf("")))));
}

TEST(PredictPermute, TakesTokensInOrderAndItsInversePutsThemBack) {
  PredictProblem problem({2, 3, 1, 19, 19, 4});
  const Array x = problem.queries(), ordered = permute(x, problem.order, 2);
  for (std::int64_t item = 0; item < x.head_count(); ++item) {
    for (int n = 0; n < 19; ++n) {
      EXPECT_EQ(*at<float>(ordered, head_at(x, item), n, 2),
                *at<float>(x, head_at(x, item), problem.order[static_cast<std::size_t>(n)], 2));
    }
  }
  const Array back = view_array(problem.args.o, Element::kF32, 2, 3, 19, 4);
  unpermute(ordered, problem.order, back, 2);
  EXPECT_EQ(problem.o, problem.q);
}

}  // namespace
}  // namespace lacuna
