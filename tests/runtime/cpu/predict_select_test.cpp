// Ranks, masses, bits and lists. With d = 1, one query and keys of one number each, a tile's score
// is that number, so every case can be written down.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "runtime/cpu/ops/ops.hpp"
#include "runtime/cpu/ops/select.hpp"
#include "tests/runtime/cpu/predict_problem.hpp"

namespace lacuna {
namespace {

using namespace predict;

constexpr float kSelectNaN = std::numeric_limits<float>::quiet_NaN();

Select select_of(const std::string& keep, const std::string& mask, int tile_q, int tile_k) {
  Select op;
  op.tile_q = tile_q;
  op.tile_k = tile_k;
  op.keep = expr_of(keep, Site::kKeep);
  if (!mask.empty()) op.mask = expr_of(mask, Site::kMask);
  Op variant = op;
  derive_classifiers(variant);
  return std::get<Select>(variant);
}

bool is_kept(const Array& bits, HeadIndex head, int i, int j) {
  return ((at<std::uint32_t>(bits, head, i)[j / 32] >> (static_cast<unsigned>(j) % 32U)) & 1U) != 0;
}

/// Kept columns of one query whose scores (and p) are `scores`.
std::vector<int> keep_columns(const std::vector<float>& scores, const std::string& keep,
                              const std::string& mask = "") {
  const int n = static_cast<int>(scores.size());
  PredictProblem problem({1, 1, 1, 1, n, 1});
  problem.q = {1};
  problem.k = scores;
  problem.args.q.data = problem.q.data();
  problem.args.k.data = problem.k.data();
  const Array q = problem.queries(), k = problem.keys();
  const Select op = select_of(keep, mask, 1, 1);
  Estimate estimate;
  estimate.rows = estimate.columns = {SummaryKind::kTokens, 1};
  estimate.normalise = Normalise::kNone;
  estimate.reduce = Reduce::kSum;
  estimate.scale = 1;
  estimate.tile_q = estimate.tile_k = 1;
  estimate.mask = op.mask;
  estimate.classifier = op.classifier;
  const EstimateJob estimate_job{estimate, problem.args, {}, &q, &k};
  const SelectJob job{op, problem.args, {}, &estimate_job};
  const Array bits = make_array(Element::kU32, 1, 1, 1, job.words());
  select_tiles(job, bits);
  std::vector<int> kept;
  for (int j = 0; j < job.words() * 32; ++j) {
    if (is_kept(bits, {0, 0}, 0, j)) kept.push_back(j);
  }
  return kept;
}

using Columns = std::vector<int>;

TEST(PredictSelect, TiesGoToTheLowerIndex) {
  EXPECT_EQ(keep_columns({3, 5, 5, 1, 5, 3}, "rank < 2"), (Columns{1, 2}));
  EXPECT_EQ(keep_columns({3, 5, 5, 1, 5, 3}, "rank < 4"), (Columns{0, 1, 2, 4}));
  EXPECT_EQ(keep_columns(std::vector<float>(40, 1.0F), "rank < 33").size(), 33U);
}

TEST(PredictSelect, MassBeforeIsTheSumOfLargerOnes) {
  const std::vector<float> p = {1, 8, 2, 4};
  EXPECT_EQ(keep_columns(p, "mass_before < 12"), (Columns{1, 3})) << "the crossing tile included";
  EXPECT_EQ(keep_columns(p, "mass_before + p <= 12"), (Columns{1, 3}));
  EXPECT_EQ(keep_columns(p, "mass_before + p <= 11"), (Columns{1})) << "it is left out";
  EXPECT_EQ(keep_columns(p, "mass_before + p <= 3 or rank == 0"), (Columns{1}));
  EXPECT_EQ(keep_columns(p, "mass_before + p <= 15"), (Columns{0, 1, 2, 3}));
}

TEST(PredictSelect, InvisibleTilesHaveNoRankAndDoNotCount) {
  EXPECT_EQ(keep_columns({9, 1, 9, 2, 3}, "rank < 1", "k == 1 or k >= 3"), (Columns{4}));
  EXPECT_EQ(keep_columns({9, 1, 9, 2, 3}, "rank < 0.5 * visible", "k >= 1"), (Columns{2, 4}));
  EXPECT_EQ(keep_columns({9, 1, 9, 2, 3}, "true", "k >= 3"), (Columns{3, 4}));
  EXPECT_EQ(keep_columns({9, 1}, "true", "k > 5"), (Columns{}));
}

/// Only tiles of the diagonal have a visible pair; bounds of q ^ k leave all of them.
TEST(PredictSelect, PairsDecideWhatBoundsLeaveOpen) {
  const PredictProblem problem({1, 1, 1, 8, 8, 8});
  for (const bool pairs : {false, true}) {
    Select op = select_of("j < visible - 1", "(q ^ k) < 4", 4, 4);
    op.pairs = pairs;
    const Array visible = visible_tiles(op, problem.args, {});
    SelectJob job{op, problem.args, {}};
    if (pairs) job.visible = &visible;
    const Array bits = make_array(Element::kU32, 1, 1, 2, 1);
    select_tiles(job, bits);
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) EXPECT_EQ(is_visible(visible, {0, 0}, i, j), i == j);
      EXPECT_EQ(is_kept(bits, {0, 0}, i, 0), !pairs) << i;
    }
  }
}

TEST(PredictSelect, ScoreIndicesAndBoundsAreKnownToKeep) {
  EXPECT_EQ(keep_columns({-1, 1, 2, 0}, "score > 0 and k1 < 2"), (Columns{1}));
  EXPECT_EQ(keep_columns({0, 0, 0, 0}, "j >= n_j - 1 or k0 + 1 <= i + 1"), (Columns{0, 3}));
}

TEST(PredictSelect, NaNRanksFirstAndCountsForNobody) {
  EXPECT_EQ(keep_columns({1, kSelectNaN, 3, 2}, "rank < 1"), (Columns{1, 2}));
  EXPECT_EQ(keep_columns({1, kSelectNaN, 3, 2}, "mass_before < 4"), (Columns{1, 2, 3}));
}

TEST(PredictSelect, BitsPastTheLastTileAreZero) {
  const Columns kept = keep_columns(std::vector<float>(37, 1.0F), "true");
  EXPECT_EQ(kept.size(), 37U);
  EXPECT_EQ(kept.back(), 36);
}

TEST(PredictSelect, SharedHeadsGetTheUnionOfTheirGroup) {
  const PredictProblem problem({2, 4, 2, 40, 70, 8});
  for (const bool shared : {false, true}) {
    Select op = select_of("(i + j + h) % 3 == b", "", 16, 2);
    op.shared_heads = shared;
    const SelectJob job{op, problem.args, {}};
    const Array bits = make_array(Element::kU32, 2, 4, 3, job.words());
    select_tiles(job, bits);
    for (int item = 0; item < 2 * 4 * 3 * 35; ++item) {
      const int b = item / (4 * 3 * 35), h = item / (3 * 35) % 4, i = item / 35 % 3, j = item % 35;
      bool expected = false;
      for (int other = 0; other < 4; ++other) {
        const bool counts = shared ? other / 2 == h / 2 : other == h;
        expected = expected || (counts && (i + j + other) % 3 == b);
      }
      EXPECT_EQ(is_kept(bits, {b, h}, i, j), expected) << item;
    }
  }
}

TEST(PredictCompact, ListsVisibleSubTilesInAscendingOrderAndFlagsPartialOnes) {
  const PredictProblem problem({1, 2, 1, 60, 60, 8});
  const Select select = select_of("j == 0 or h == 1", "k <= q", 32, 32);
  const SelectJob job{select, problem.args, {}};
  const Array bits = make_array(Element::kU32, 1, 2, 2, 1);
  select_tiles(job, bits);
  Compact op{0, select.mask, select.classifier, 32, 32, 16, 16};
  const Lists lists = compact(bits, op, problem.args, {});
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 4; ++i) {
      std::vector<std::uint32_t> expected;
      for (int j = 0; j <= i && (h == 1 || j < 2); ++j) {
        expected.push_back(static_cast<std::uint32_t>(j) | (j == i ? 0x80000000U : 0U));
      }
      const auto* list = at<std::uint32_t>(lists.indices, {0, h}, i);
      const auto count = *at<std::int32_t>(lists.counts, {0, h}, i);
      EXPECT_EQ(std::vector<std::uint32_t>(list, list + count), expected) << h << ", " << i;
    }
  }
}

}  // namespace
}  // namespace lacuna
