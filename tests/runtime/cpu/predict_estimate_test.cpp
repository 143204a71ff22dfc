// Estimates, work tile by work tile, against a plain double computation of every pair.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/cpu/ops/estimate.hpp"
#include "runtime/cpu/ops/ops.hpp"
#include "tests/runtime/cpu/expected_estimate.hpp"
#include "tests/runtime/cpu/predict_problem.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

using namespace predict;

std::vector<std::vector<double>> tokens_of(const Array& x, HeadIndex head) {
  std::vector<std::vector<double>> tokens;
  std::vector<float> row(static_cast<std::size_t>(x.width()));
  for (int n = 0; n < x.tokens(); ++n) {
    load_row(x, head, n, row.data());
    tokens.emplace_back(row.begin(), row.end());
  }
  return tokens;
}

Estimate estimate_of(Summary rows, Summary columns, int tile_q, int tile_k) {
  Estimate op;
  op.rows = rows;
  op.columns = columns;
  op.tile_q = tile_q;
  op.tile_k = tile_k;
  op.scale = 0.4F;
  op.bits = rows.kind == SummaryKind::kMean ? 32 : 16;
  return op;
}

Estimate with_mask(Estimate op, const std::string& mask, const std::string& reference = "") {
  if (!mask.empty()) op.mask = expr_of(mask, Site::kMask);
  if (!reference.empty()) op.reference = expr_of(reference, Site::kReference);
  Op variant = op;
  derive_classifiers(variant);
  return std::get<Estimate>(variant);
}

/// Compares every work tile of every head.
void expect_estimate(const PredictProblem& problem, const EstimateJob& job, Expected expected) {
  const HostArgs& args = problem.args;
  expected.scale = double{job.op.scale};
  expected.reduce = job.op.reduce;
  expected.normalise = job.op.normalise;
  const auto tiles = static_cast<std::size_t>(job.k_tiles());
  std::vector<float> p(tiles), score(tiles);
  for (std::int64_t item = 0; item < std::int64_t{args.n_b} * args.n_h; ++item) {
    const HeadIndex head{item / args.n_h, item % args.n_h};
    const HeadIndex kv_head{head.b, head.h / (args.n_h / args.n_h_kv)};
    expected.q = {tokens_of(problem.queries(), head), job.op.tile_q, job.op.rows};
    expected.k = {tokens_of(problem.keys(), kv_head), job.op.tile_k, job.op.columns};
    expected.previous_lse = problem.previous_lse.data() + item * args.n_q;
    const KeyColumns keys = load_columns(job, kv_head);
    EstimateScratch scratch(job);
    for (int i = 0; i < job.q_tiles(); ++i) {
      expected.compute(i);
      estimate_row(job, keys, head, i, scratch, p, score);
      for (std::size_t j = 0; j < tiles; ++j) {
        SCOPED_TRACE(testing::Message() << "head " << item << " tile " << i << ", " << j);
        if (std::isinf(expected.score[j])) {
          EXPECT_EQ(score[j], expected.score[j]);
          EXPECT_EQ(p[j], expected.p[j]);
        } else {
          EXPECT_NEAR(score[j], expected.score[j], 1e-5 * (1 + std::abs(expected.score[j])));
          EXPECT_NEAR(p[j], expected.p[j], 1e-5 * (1 + std::abs(expected.p[j])));
        }
      }
    }
  }
}

constexpr Summary kOfMean{SummaryKind::kMean, 1}, kOfTokens{SummaryKind::kTokens, 1};
TokenMask causal_mask(const PredictProblem& problem) {
  const int offset = problem.shape.n_k - problem.shape.n_q;
  return [offset](int q, int k) { return k <= q + offset; };
}
const char* const kCausalText = "k <= q + n_k - n_q";

TEST(PredictEstimate, PooledTilesUnderEveryNormalisationOfTheRow) {
  for (const PredictShape& shape : {PredictShape{2, 4, 2, 100, 130, 16}, {1, 1, 1, 1, 1, 8}}) {
    const PredictProblem problem(shape);
    for (const Normalise normalise : {Normalise::kSoftmax, Normalise::kNone}) {
      for (const Reduce reduce : {Reduce::kMax, Reduce::kSum}) {
        Estimate op = with_mask(estimate_of(kOfMean, kOfMean, 32, 16), kCausalText);
        op.normalise = normalise;
        op.reduce = reduce;
        const Array q = summarise(problem.queries(), nullptr, 32, 1);
        const Array k = summarise(problem.keys(), nullptr, 16, 1);
        EstimateJob job{op, problem.args, {}, &q, &k};
        Expected expected;
        expected.mask = causal_mask(problem);
        expect_estimate(problem, job, expected);
      }
    }
  }
}

TEST(PredictEstimate, ExcludedTilesTakeNoPartInTheNormalisation) {
  const PredictProblem problem({1, 2, 2, 64, 96, 16});
  Estimate op = estimate_of(kOfMean, kOfMean, 16, 16);
  op.exclude = expr_of("similar_k < 0.5 or similar_q < -1 or j == i", Site::kExclude);
  const Array q = summarise(problem.queries(), nullptr, 16, 1);
  const Array k = summarise(problem.keys(), nullptr, 16, 1);
  Array similar_q = make_array(Element::kF32, 1, 2, 4),
        similar_k = make_array(Element::kF32, 1, 2, 6);
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 4; ++i) *at<float>(similar_q, {0, h}, i) = i == 3 ? -2.0F : 0.0F;
    for (int j = 0; j < 6; ++j) *at<float>(similar_k, {0, h}, j) = j == 4 ? 0.0F : 1.0F;
  }
  EstimateJob job{op, problem.args, {}, &q, &k};
  job.similar_q = &similar_q;
  job.similar_k = &similar_k;
  Expected expected;
  expected.excluded = [](int i, int j) { return j == 4 || i == 3 || j == i; };
  expect_estimate(problem, job, expected);
}

/// Under sanitizers every seventh combination: each value of each loop still occurs.
TEST(PredictEstimate, TokensInTilesAndInColumns) {
  const PredictProblem problem({1, 4, 2, 70, 90, 16});
  const Array q = problem.queries(), k = problem.keys();
  const int step = test::draws(7) < 7 ? 7 : 1;
  int number = 0;
  for (const int tile_k : {1, 8, 32, 12}) {
    for (const Normalise normalise :
         {Normalise::kSoftmax, Normalise::kNone, Normalise::kPreviousLse}) {
      for (const Reduce reduce : {Reduce::kMax, Reduce::kSum}) {
        for (const bool causal : {false, true}) {
          if (number++ % step != 0) continue;
          Estimate op =
              with_mask(estimate_of(kOfTokens, kOfTokens, 32, tile_k), causal ? kCausalText : "");
          op.normalise = normalise;
          op.reduce = reduce;
          EstimateJob job{op, problem.args, {}, &q, &k};
          const Array previous = view_array(problem.args.previous_lse, Element::kF32, 1, 4, 70);
          job.previous_lse = &previous;
          Expected expected;
          if (causal) expected.mask = causal_mask(problem);
          expect_estimate(problem, job, expected);
        }
      }
    }
  }
}

TEST(PredictEstimate, MeanOfQueriesAgainstSingleKeys) {
  const PredictProblem problem({1, 2, 1, 70, 50, 16});
  const Array q = summarise(problem.queries(), nullptr, 32, 1), k = problem.keys();
  const Estimate op = with_mask(estimate_of(kOfMean, kOfTokens, 32, 1), "k <= q and k >= q - 20");
  const EstimateJob job{op, problem.args, {}, &q, &k};
  Expected expected;
  expected.mask = [](int a, int b) { return b <= a && b >= a - 20; };
  expect_estimate(problem, job, expected);
}

TEST(PredictEstimate, ExactReferenceKeysNormaliseAndRowsWithoutThemHaveNoWeight) {
  const PredictProblem problem({1, 2, 1, 60, 60, 16});
  const Array q = problem.queries(), k = problem.keys();
  Estimate op = with_mask(estimate_of(kOfTokens, kOfTokens, 16, 8), "k <= q",
                          "(k < 4 or q - k < 7) and q >= 20");
  op.normalise = Normalise::kLse;
  EstimateJob job{op, problem.args, {}, &q, &k};
  job.exact_q = &q;
  job.exact_k = &k;
  Expected expected;
  expected.mask = [](int a, int b) { return b <= a; };
  expected.reference = [](int a, int b) { return (b < 4 || a - b < 7) && a >= 20; };
  expect_estimate(problem, job, expected);
}

TEST(PredictEstimate, RowsWhosePreviousLseIsMinusInfinityHaveNoWeight) {
  PredictProblem problem({1, 1, 1, 20, 24, 8});
  for (int n = 0; n < 17; ++n) {
    problem.previous_lse[static_cast<std::size_t>(n)] = -std::numeric_limits<float>::infinity();
  }
  const Array q = problem.queries(), k = problem.keys();
  const Array previous = view_array(problem.args.previous_lse, Element::kF32, 1, 1, 20);
  for (const Reduce reduce : {Reduce::kMax, Reduce::kSum}) {
    Estimate op = estimate_of(kOfTokens, kOfTokens, 16, 8);
    op.normalise = Normalise::kPreviousLse;
    op.reduce = reduce;
    EstimateJob job{op, problem.args, {}, &q, &k};
    job.previous_lse = &previous;
    expect_estimate(problem, job, {});
  }
}

TEST(PredictEstimate, AntidiagonalsOfCellsWithARaggedLastOne) {
  const PredictProblem problem({1, 2, 1, 83, 75, 16});
  const Array q = problem.queries(), k = problem.keys();
  const Summary cells{SummaryKind::kAntidiagonal, 4};
  Estimate op = with_mask(estimate_of(cells, cells, 32, 16), kCausalText);
  op.reduce = Reduce::kSum;
  const EstimateJob job{op, problem.args, {}, &q, &k};
  Expected expected;
  expected.mask = causal_mask(problem);
  expect_estimate(problem, job, expected);
}

TEST(PredictEstimate, TheLastQueriesSpeakForEveryTile) {
  for (const int n_q : {50, 9}) {
    const PredictProblem problem({1, 2, 1, n_q, 75, 16});
    const Array q = problem.queries(), k = problem.keys();
    Estimate op = with_mask(estimate_of({SummaryKind::kLast, 20}, kOfTokens, 16, 16), kCausalText);
    op.reduce = Reduce::kSum;
    const EstimateJob job{op, problem.args, {}, &q, &k};
    Expected expected;
    expected.mask = causal_mask(problem);
    expect_estimate(problem, job, expected);
  }
}

TEST(PredictEstimate, FourBitsWithSmoothingEqualTheLogitsOfTheRoundedTokens) {
  const PredictProblem problem({1, 4, 2, 70, 90, 16});
  const Array q = problem.queries(), k = problem.keys();
  const Array q_mean = token_mean(q, 1), k_mean = token_mean(k, 1);
  const Array row_bias = project(q, nullptr, k_mean, 4, 1);
  const Array column_bias = project(k, &k_mean, q_mean, 4, 1);
  for (const int bits : {4, 8}) {
    const Quantised qs = quantise(q, &q_mean, {-1, -1, bits, QuantGroup::kThread, 32}, true, 1);
    const Quantised ks = quantise(k, &k_mean, {-1, -1, bits, QuantGroup::kThread, 32}, false, 1);
    Estimate op = with_mask(estimate_of(kOfTokens, kOfTokens, 32, 32), kCausalText);
    op.bits = bits;
    op.normalise = Normalise::kNone;
    EstimateJob job{op,         problem.args, {},        &qs.values,  &ks.values,
                    &qs.scales, &ks.scales,   &row_bias, &column_bias};
    std::vector<float> p(3), score(3), a(16), c(16);
    for (int h = 0; h < 4; ++h) {
      const HeadIndex head{0, h}, kv_head{0, h / 2};
      EstimateScratch scratch(job);
      const KeyColumns keys = load_columns(job, kv_head);
      for (int i = 0; i < 3; ++i) {
        estimate_row(job, keys, head, i, scratch, p, score);
        for (int j = 0; j < 3; ++j) {
          double largest = -kEstimateInfinity;
          for (int n = i * 32; n < std::min(i * 32 + 32, 70); ++n) {
            for (int m = j * 32; m < std::min(j * 32 + 32, 90); ++m) {
              if (m > n + 20) continue;
              load_row(qs.values, head, n, a.data());
              load_row(ks.values, kv_head, m, c.data());
              const double value =
                  dot(a.data(), c.data(), 16) * double{*at<float>(qs.scales, head, n)} *
                      double{*at<float>(ks.scales, kv_head, m)} +
                  double{*at<float>(row_bias, head, n)} + double{*at<float>(column_bias, head, m)};
              largest = std::max(largest, double{op.scale} * value);
            }
          }
          const double actual = double{score[static_cast<std::size_t>(j)]};
          EXPECT_TRUE(actual == largest || std::abs(actual - largest) < 2e-6) << i << ", " << j;
        }
      }
    }
  }
}

TEST(PredictEstimate, ANaNQueryDoesNotReachTheOtherRowsOfItsTile) {
  PredictProblem clean({1, 1, 1, 16, 32, 8}), damaged({1, 1, 1, 16, 32, 8});
  for (PredictProblem* problem : {&clean, &damaged}) {
    for (int c = 0; c < 8; ++c) problem->q[static_cast<std::size_t>(5 * 8 + c)] = 0;
  }
  damaged.q[5 * 8] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> p[2] = {std::vector<float>(4), std::vector<float>(4)}, score(4);
  const Estimate op = estimate_of(kOfTokens, kOfTokens, 16, 8);
  for (int run = 0; run < 2; ++run) {
    const PredictProblem& problem = run == 0 ? clean : damaged;
    const Array q = problem.queries(), k = problem.keys();
    const EstimateJob job{op, problem.args, {}, &q, &k};
    EstimateScratch scratch(job);
    estimate_row(job, load_columns(job, {0, 0}), {0, 0}, 0, scratch, p[run], score);
  }
  EXPECT_EQ(p[0], p[1]) << "a row of zeros has no largest weight, one of NaN none at all";
}

}  // namespace
}  // namespace lacuna
