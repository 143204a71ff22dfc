// Integers, e4m3 and quantised problems against hand-computed values.
#include "tests/oracle/quantise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lacuna::oracle {
namespace {

TEST(Quantise, RoundsHalvesAwayFromZero) {
  // The largest magnitude 127 gives scale 1, so quotients are the values themselves.
  const Quantised x = quantise({127, 2.5, -2.5, 0.4}, {}, 1, 1, 4, {8, Group::kBlock, 64, true});
  EXPECT_EQ(x.integers, (std::vector<int>{127, 3, -3, 0}));
  EXPECT_EQ(x.scale, (std::vector<float>{1}));
  EXPECT_EQ(x.slack, (std::vector<double>{0, 1, 1, 0})) << "only halves may fall either way";
}

TEST(Quantise, FourBitsEndAtSeven) {
  const Quantised x = quantise({14, -14, 3, 5}, {}, 1, 2, 2, {4, Group::kBlock, 64, true});
  EXPECT_EQ(x.integers, (std::vector<int>{7, -7, 2, 3}));
  EXPECT_EQ(x.scale, (std::vector<float>{2, 2}));
}

TEST(Quantise, AZeroGroupHasScaleOne) {
  const Quantised x = quantise({0, 0, 5, 1}, {}, 2, 1, 2, {8, Group::kBlock, 64, true});
  EXPECT_EQ(x.scale[0], 1.0F);
  EXPECT_EQ(x.integers[0], 0);
  EXPECT_EQ(x.scale[1], 5.0F / 127.0F);
}

TEST(Quantise, SubtractsTheMean) {
  const std::vector<double> x = {1, 10, 3, 30};
  const auto mean = token_means(x, 1, 2, 2);
  EXPECT_EQ(mean, (std::vector<double>{2, 20}));
  EXPECT_EQ(quantise(x, mean, 1, 2, 2, {8, Group::kBlock, 64, true}).integers,
            (std::vector<int>{-13, -127, 13, 127}));
}

TEST(Quantise, GroupsFollowTheRowsOfAnMma) {
  const Grouping q_thread{8, Group::kThread, 64, true}, k_thread{4, Group::kThread, 64, false};
  EXPECT_EQ(group_of(q_thread, 3), group_of(q_thread, 11));
  EXPECT_NE(group_of(q_thread, 3), group_of(q_thread, 4));
  EXPECT_EQ(group_of(q_thread, 16), 8);
  EXPECT_EQ(group_of(q_thread, 64), 32);
  for (const int k : {2, 3, 10, 11, 18, 19, 26, 27}) EXPECT_EQ(group_of(k_thread, k), 1) << k;
  EXPECT_EQ(group_of(k_thread, 32), 4);
  EXPECT_EQ(group_of(k_thread, 64), 8);
  EXPECT_EQ(group_of({8, Group::kWarp, 128, true}, 40), 2);
  EXPECT_EQ(group_of({8, Group::kWarp, 64, false}, 40), 0);
  EXPECT_EQ(group_of({8, Group::kBlock, 64, false}, 130), 2);
}

TEST(Quantise, E4m3HasThreeBitsOfMantissa) {
  EXPECT_EQ(round_e4m3(448), 448);
  EXPECT_EQ(round_e4m3(1e9), 448);
  EXPECT_EQ(round_e4m3(-460), -448);
  EXPECT_EQ(round_e4m3(17), 16) << "16 and 18 are neighbours, the tie goes to the even one";
  EXPECT_EQ(round_e4m3(19), 20);
  EXPECT_EQ(round_e4m3(-1.1), -1.125);
  EXPECT_EQ(round_e4m3(std::ldexp(1, -9)), std::ldexp(1, -9)) << "the smallest";
  EXPECT_EQ(round_e4m3(std::ldexp(1, -10)), 0);
  EXPECT_EQ(round_e4m3(std::ldexp(3, -10)), std::ldexp(4, -10));
  EXPECT_EQ(round_e4m3(0.0), 0);
}

TEST(Quantise, ValuesHaveOneScaleForEachChannel) {
  // Channel 0: scale 448 / 448 = 1; channel 1: all zero.
  const auto v = quantise_values({448, 0, 17, 0, -3.1, 0}, 1, 3, 2, 448);
  EXPECT_EQ(v, (std::vector<double>{448, 0, 16, 0, -3, 0}));
}

Problem random_problem(int n, int d, unsigned seed) {
  Problem p;
  p.n_h = 2, p.n_q = p.n_k = n, p.d = d, p.scale = 1 / std::sqrt(d);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  p.q.resize(static_cast<std::size_t>(2 * n * d));
  p.k.resize(static_cast<std::size_t>(n * d)), p.v.resize(p.k.size());
  for (auto* x : {&p.q, &p.k, &p.v})
    for (double& value : *x) value = static_cast<double>(static_cast<float>(normal(random)));
  return p;
}

double relative_error(const Output& a, const Output& b) {
  double sum = 0, error = 0;
  for (std::size_t x = 0; x < a.o.size(); ++x)
    sum += std::abs(b.o[x]), error += std::abs(a.o[x] - b.o[x]);
  return error / sum;
}

TEST(Quantise, AQuantisedProblemIsNearTheProblem) {
  Problem p = random_problem(80, 32, 3);
  for (std::size_t x = 0; x < p.k.size(); x += 32) p.k[x] += 40, p.k[x + 1] -= 30;
  for (std::size_t x = 0; x < p.q.size(); x += 32) p.q[x + 5] += 20;
  const Output exact = oracle_dense(p);
  Quantisation form;
  form.qk_bits = 8, form.tile_q = form.tile_k = 32;
  const double rough = relative_error(oracle_dense(quantised_problem(p, form)), exact);
  form.smooth_k = form.smooth_q = true;
  const Output smooth = oracle_dense(quantised_problem(p, form));
  EXPECT_LT(relative_error(smooth, exact), 0.02) << "and the biases give back what was taken away";
  EXPECT_GT(rough, 3 * relative_error(smooth, exact)) << "offsets cost precision where they stay";
  for (std::size_t row = 0; row < exact.lse.size(); ++row)
    EXPECT_NEAR(smooth.lse[row], exact.lse[row], 0.05);
  form.v_bits = 8;
  const double with_values = relative_error(oracle_dense(quantised_problem(p, form)), exact);
  EXPECT_GT(with_values, relative_error(smooth, exact));
  EXPECT_LT(with_values, 0.06);
}

TEST(Quantise, WeightsAreRoundedInTheTileThatSeesThem) {
  // Two keys in two tiles: exp(-1) of the first in ascending order, of the second in descending.
  Problem p = random_problem(2, 1, 4);
  p.n_h = 1, p.n_q = 1, p.scale = 1, p.e4m3_weights = true;
  p.q = {1}, p.k = {1, 0}, p.v = {1, 1};
  const double small = std::exp(-1.0), rounded = round_e4m3(448 * small) / 448;
  const Tiling ascending{1, 1, false, {}}, descending{1, 1, true, {}};
  const Output up = oracle_attention(p, ascending, std::nullopt, {1, 1});
  const Output down = oracle_attention(p, descending, std::nullopt, {1, 1});
  EXPECT_NEAR(up.o[0], (1 + rounded) / (1 + small), 1e-12);
  EXPECT_NEAR(down.o[0], 1, 1e-12) << "the small key came first and was the maximum then";
  EXPECT_NE(rounded, small);
}

TEST(Quantise, AWeightBetweenTwoCodesMayBecomeEither) {
  // Two keys of one tile: the largest weight is 448 exactly, the other is 232, the middle of 224
  // and 240, or next to it.
  Problem p = random_problem(2, 1, 4);
  p.n_h = 1, p.n_q = 1, p.scale = 1, p.e4m3_weights = true;
  const Tiling one_tile{1, 2, false, {}};
  const auto with_weight = [&](double weight) {
    p.q = {1}, p.k = {0, std::log(weight / 448)}, p.v = {0, -3};
    return oracle_attention(p, one_tile, std::nullopt, {1});
  };
  const Output middle = with_weight(232 * (1 + 1e-7)), aside = with_weight(232 * (1 + 1e-4));
  const double l = 1 + 232.0 / 448;
  EXPECT_NEAR(middle.o[0], -3 * 240 / 448.0 / l, 1e-6);
  EXPECT_NEAR(middle.reach[0], 3 * 16 / 448.0 / l, 1e-6);
  EXPECT_EQ(aside.reach[0], 0);
}

}  // namespace
}  // namespace lacuna::oracle
