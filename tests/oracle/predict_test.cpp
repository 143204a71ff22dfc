// The predictor oracle against hand-computed estimates, ranks and decisions.
#include "tests/oracle/predict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

Problem random_problem(int n_h, int n_h_kv, int n_q, int n_k, int d, unsigned seed) {
  Problem p;
  p.n_h = n_h, p.n_h_kv = n_h_kv, p.n_q = n_q, p.n_k = n_k, p.d = d, p.scale = 1 / std::sqrt(d);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  p.q.resize(static_cast<std::size_t>(n_h * n_q * d));
  p.k.resize(static_cast<std::size_t>(n_h_kv * n_k * d)), p.v.resize(p.k.size());
  for (auto* x : {&p.q, &p.k, &p.v})
    for (double& value : *x) value = static_cast<double>(static_cast<float>(normal(random)));
  return p;
}

/// One query and keys with given logits.
Problem logits_problem(const std::vector<double>& logits) {
  Problem p;
  p.n_q = 1, p.n_k = static_cast<int>(logits.size()), p.d = 1, p.scale = 1;
  p.q = {1}, p.k = logits, p.v = logits;
  return p;
}

Predictor predictor_of(int tile_q, int tile_k, const EstimateRule& rule) {
  Predictor x;
  x.tile_q = tile_q, x.tile_k = tile_k, x.estimate = rule;
  x.keep = [](const TileFacts&) { return true; };
  return x;
}

std::vector<double> values_of(const std::vector<Band>& bands) {
  std::vector<double> out;
  for (const Band& band : bands) out.push_back(band.value);
  return out;
}

TEST(Predict, PooledSoftmaxSumsToOne) {
  const Problem p = logits_problem({1, 3, 0, 0, 5, 5});  // tile means 2, 0, 5
  const RowEstimate row = oracle_estimate(p, predictor_of(1, 2, {}), 0, 0, 0);
  const double sum = std::exp(2) + std::exp(0) + std::exp(5);
  EXPECT_NEAR(row.p[0].value, std::exp(2) / sum, 1e-12);
  EXPECT_NEAR(row.p[2].value, std::exp(5) / sum, 1e-12);
  EXPECT_EQ(values_of(row.score), (std::vector<double>{2, 0, 5}));
  for (const Band& band : row.p) {
    EXPECT_LT(band.low, band.value);
    EXPECT_GT(band.high, band.value);
    EXPECT_LT(band.high / band.low, 1.001);
  }
}

TEST(Predict, APartialTileIsTheMeanOfItsRealTokens) {
  const Problem p = logits_problem({2, 2, 6});
  EXPECT_EQ(values_of(oracle_estimate(p, predictor_of(1, 2, {}), 0, 0, 0).score),
            (std::vector<double>{2, 6}));
}

TEST(Predict, TokensReduceToTheirTile) {
  const Problem p = logits_problem({1, 3, 0, -2});
  const double sum = std::exp(1) + std::exp(3) + std::exp(0) + std::exp(-2);
  EstimateRule rule;
  rule.columns = rule.rows = Compared::kTokens, rule.bits = 16;
  const RowEstimate largest = oracle_estimate(p, predictor_of(1, 2, rule), 0, 0, 0);
  EXPECT_NEAR(largest.p[0].value, std::exp(3) / sum, 1e-12);
  EXPECT_NEAR(largest.p[1].value, 1 / sum, 1e-12);
  rule.reduction = Reduction::kSum;
  const RowEstimate total = oracle_estimate(p, predictor_of(1, 2, rule), 0, 0, 0);
  EXPECT_NEAR(total.p[0].value, (std::exp(1) + std::exp(3)) / sum, 1e-12);
  EXPECT_EQ(values_of(total.score), (std::vector<double>{4, -2}));
}

TEST(Predict, SumsAverageOverRowsThatSeeSomething) {
  Problem p = random_problem(1, 1, 8, 8, 4, 2);
  p.mask = [](int q, int k, int, int) { return q >= 3 && k <= q; };
  EstimateRule rule;
  rule.rows = rule.columns = Compared::kTokens, rule.bits = 16, rule.reduction = Reduction::kSum;
  const RowEstimate row = oracle_estimate(p, predictor_of(8, 2, rule), 0, 0, 0);
  double sum = 0;
  for (const Band& band : row.p) sum += band.value;
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Predict, AReferenceNormalisesByItsKeys) {
  const Problem p = logits_problem({1, 2, 4, 0});
  EstimateRule rule;
  rule.rows = rule.columns = Compared::kTokens, rule.bits = 16, rule.norm = Norm::kReference;
  rule.reference = [](int, int k) { return k < 2; };
  const double lse = std::log(std::exp(1) + std::exp(2));
  const RowEstimate row = oracle_estimate(p, predictor_of(1, 1, rule), 0, 0, 0);
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_NEAR(row.p[k].value, std::exp(p.k[k] - lse), 1e-12) << k;
  rule.reference = [](int, int) { return false; };
  const RowEstimate none = oracle_estimate(p, predictor_of(1, 1, rule), 0, 0, 0);
  EXPECT_EQ(values_of(none.p), (std::vector<double>(4, 0.0)));
  EXPECT_EQ(values_of(none.score), (std::vector<double>(4, -kInfinity)));
}

TEST(Predict, APreviousLseNormalises) {
  const Problem p = logits_problem({1, 2});
  EstimateRule rule;
  rule.rows = rule.columns = Compared::kTokens, rule.bits = 16, rule.norm = Norm::kPrevious;
  rule.previous_lse = {3};
  const RowEstimate row = oracle_estimate(p, predictor_of(1, 1, rule), 0, 0, 0);
  EXPECT_NEAR(row.p[1].value, std::exp(-1), 1e-12);
  rule.previous_lse = {-kInfinity};
  EXPECT_EQ(values_of(oracle_estimate(p, predictor_of(1, 1, rule), 0, 0, 0).p),
            (std::vector<double>{0, 0}));
}

TEST(Predict, AntidiagonalsRunAgainstEachOther) {
  Problem p;
  p.n_q = p.n_k = 3, p.d = 1, p.scale = 1;
  p.q = {1, 10, 100}, p.k = {2, 3, 5}, p.v = p.k;
  EstimateRule rule;
  rule.rows = rule.columns = Compared::kAntidiagonal, rule.count = 2, rule.bits = 16;
  rule.norm = Norm::kNone;
  // Cells {0, 1} and {2, -}: q[1] k[0] + q[0] k[1], then the missing tokens count as 0.
  const RowEstimate first = oracle_estimate(p, predictor_of(2, 2, rule), 0, 0, 0);
  EXPECT_EQ(values_of(first.p), (std::vector<double>{(20 + 3) / 2.0, 50 / 2.0}));
  const RowEstimate last = oracle_estimate(p, predictor_of(2, 2, rule), 0, 0, 1);
  EXPECT_EQ(values_of(last.p), (std::vector<double>{300 / 2.0, 0}));
}

TEST(Predict, LastRowsSpeakForEveryTile) {
  Problem p = random_problem(1, 1, 12, 8, 4, 3);
  p.mask = [](int q, int k, int, int) { return k <= q - 4; };
  EstimateRule rule;
  rule.rows = Compared::kLast, rule.columns = Compared::kTokens, rule.count = 5, rule.bits = 16;
  rule.reduction = Reduction::kSum;
  const Predictor predictor = predictor_of(4, 2, rule);
  const RowEstimate first = oracle_estimate(p, predictor, 0, 0, 0);
  EXPECT_EQ(values_of(first.p), values_of(oracle_estimate(p, predictor, 0, 0, 2).p));
  EXPECT_EQ(first.visible, (std::vector<std::uint8_t>{0, 0, 0, 0}));
  double sum = 0;
  for (const Band& band : first.p) sum += band.value;
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Predict, IntegersAndBiasesStandForTheProduct) {
  Problem p = random_problem(2, 1, 40, 48, 16, 4);
  for (std::size_t x = 0; x < p.k.size(); x += 16) p.k[x] += 8;
  EstimateRule rule;
  rule.rows = rule.columns = Compared::kTokens, rule.bits = 16, rule.norm = Norm::kNone;
  Predictor exact = predictor_of(16, 8, rule), rounded = exact;
  rounded.estimate->bits = 8, rounded.smooth_q = rounded.smooth_k = true;
  for (int i = 0; i < 3; ++i) {
    const auto a = oracle_estimate(p, exact, 0, 1, i), b = oracle_estimate(p, rounded, 0, 1, i);
    for (std::size_t j = 0; j < a.p.size(); ++j) {
      EXPECT_NEAR(a.p[j].value, b.p[j].value, 0.1);
      EXPECT_NE(a.p[j].value, b.p[j].value);
    }
  }
}

TEST(Predict, InvisibleTilesHaveNoEstimateAndAreNotKept) {
  Problem p = random_problem(1, 1, 8, 8, 4, 5);
  p.mask = [](int q, int k, int, int) { return k <= q; };
  Predictor predictor = predictor_of(2, 2, {});
  predictor.keep = [](const TileFacts& t) { return t.rank < t.visible; };
  const KeptTiles tiles = oracle_kept(p, predictor);
  for (std::size_t x = 0; x < tiles.kept.size(); ++x) {
    EXPECT_EQ(tiles.kept[x], x % 4 <= x / 4 ? 1 : 0);
    EXPECT_EQ(tiles.stable[x], 1);
  }
  EXPECT_EQ(oracle_estimate(p, predictor, 0, 0, 0).p[1].value, 0);
}

TEST(Predict, RankGivesTiesToTheLowerIndex) {
  const Problem p = logits_problem({1, 5, 5, 1, 5});
  Predictor predictor = predictor_of(1, 1, {});
  predictor.keep = [](const TileFacts& t) { return t.rank < 2; };
  const KeptTiles tiles = oracle_kept(p, predictor);
  EXPECT_EQ(tiles.kept, (std::vector<std::uint8_t>{0, 1, 1, 0, 0}));
  EXPECT_EQ(tiles.stable, (std::vector<std::uint8_t>(5, 1)));
}

TEST(Predict, MassBeforeIsThatOfLargerTiles) {
  const Problem p = logits_problem({std::log(0.2), std::log(0.5), std::log(0.3)});
  Predictor predictor = predictor_of(1, 1, {});
  predictor.keep = [](const TileFacts& t) { return t.mass_before < 0.6; };
  EXPECT_EQ(oracle_kept(p, predictor).kept, (std::vector<std::uint8_t>{0, 1, 1}));
  predictor.keep = [](const TileFacts& t) { return t.mass_before + t.p <= 0.6; };
  EXPECT_EQ(oracle_kept(p, predictor).kept, (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(Predict, DecisionsNearAThresholdAreUnstable) {
  const Problem p = logits_problem({std::log(0.2), std::log(0.5), std::log(0.3)});
  Predictor predictor = predictor_of(1, 1, {});
  predictor.keep = [](const TileFacts& t) { return t.p > 0.3; };
  EXPECT_EQ(oracle_kept(p, predictor).stable, (std::vector<std::uint8_t>{1, 1, 0}));
  predictor.keep = [](const TileFacts& t) { return t.p > 0.301; };
  EXPECT_EQ(oracle_kept(p, predictor).stable, (std::vector<std::uint8_t>{1, 1, 1}));
}

TEST(Predict, SimilarityIsOneForEqualRowsAndZeroForOpposites) {
  const auto cosine = [](const std::vector<double>& x) {
    return self_similarity(x, {}, 1, 2, 2, 2, Similarity::kCosine)[0].value;
  };
  EXPECT_NEAR(cosine({3, 4, 3, 4}), 1, 1e-12);
  EXPECT_NEAR(cosine({3, 4, -6, -8}), 0, 1e-12);
  EXPECT_NEAR(cosine({1, 0, 0, 7}), 0.5, 1e-12) << "lengths do not count";
  EXPECT_NEAR(cosine({0, 0, 0, 7}), 1, 1e-12) << "zero tokens are left out";
  EXPECT_EQ(cosine({0, 0, 0, 0}), -kInfinity);
  // Gram matrix of (1, 0), (0, 2): 1, 0, 0, 4. Mean 5/4, largest 4.
  EXPECT_NEAR(self_similarity({1, 0, 0, 2}, {}, 1, 2, 2, 2, Similarity::kGramMax)[0].value,
              5.0 / 16, 1e-12);
}

TEST(Predict, AnExcludedTileLeavesTheOthersItsMass) {
  Problem p = logits_problem({1, 1, 2, -2, 0, 0});  // tile 1 is dissimilar, tile 2 all zero
  EstimateRule rule;
  rule.exclude = [](const TileFacts& t) { return t.similar_k > -1 && t.similar_k < 0.5; };
  Predictor predictor = predictor_of(1, 2, rule);
  predictor.uses_similarity = true;
  const RowEstimate row = oracle_estimate(p, predictor, 0, 0, 0);
  EXPECT_NEAR(row.p[0].value, std::exp(1) / (std::exp(1) + 1), 1e-12);
  EXPECT_EQ(row.p[1].value, 0);
  EXPECT_EQ(row.score[1].value, -kInfinity);
}

TEST(Predict, SharedHeadsKeepTheUnion) {
  Problem p = random_problem(4, 2, 4, 32, 4, 6);
  Predictor predictor = predictor_of(4, 4, {});
  predictor.keep = [](const TileFacts& t) { return t.rank < 2; };
  const KeptTiles own = oracle_kept(p, predictor);
  predictor.shared_heads = true;
  const KeptTiles shared = oracle_kept(p, predictor);
  for (std::size_t h = 0; h < 4; ++h)
    for (std::size_t j = 0; j < 8; ++j)
      EXPECT_EQ(shared.kept[h * 8 + j], own.kept[h / 2 * 16 + j] | own.kept[h / 2 * 16 + 8 + j]);
}

TEST(Predict, ANanCountsAsZeroInTheMeanOfItsTile) {
  Problem p = random_problem(1, 1, 8, 16, 4, 7);
  Problem zero = p;
  p.q[5 * 4] = std::numeric_limits<double>::quiet_NaN();
  zero.q[5 * 4] = 0;
  Predictor predictor = predictor_of(4, 4, {});
  predictor.keep = [](const TileFacts& t) { return t.rank < 2; };
  const KeptTiles kept = oracle_kept(p, predictor);
  EXPECT_EQ(kept.kept, oracle_kept(zero, predictor).kept);
  EXPECT_EQ(kept.stable, std::vector<std::uint8_t>(8, 1));
}

}  // namespace
}  // namespace lacuna::oracle
