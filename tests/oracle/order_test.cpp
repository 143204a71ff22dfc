// Token orders: what is permuted must come back.
#include "tests/oracle/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace lacuna::oracle {
namespace {

TEST(Order, LoopsNameTheirAxes) {
  EXPECT_EQ(loop_order(2, 2, 3, "thw"),
            (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(loop_order(2, 2, 3, "twh"),
            (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
  EXPECT_EQ(loop_order(2, 2, 3, "hwt"),
            (std::vector<std::int32_t>{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
}

TEST(Order, StepsAreMeasuredInTheVideo) {
  EXPECT_EQ(mean_step({0, 1, 2}, 1, 3), 1);
  EXPECT_EQ(mean_step({0, 5}, 2, 3), 3) << "one row and two columns";
  EXPECT_EQ(mean_step({0, 6}, 2, 3), 1) << "one frame";
}

TEST(Order, KnowsAPermutation) {
  EXPECT_TRUE(is_permutation({2, 0, 1}));
  EXPECT_FALSE(is_permutation({2, 0, 2}));
  EXPECT_FALSE(is_permutation({3, 0, 1}));
  EXPECT_FALSE(is_permutation({-1, 0, 1}));
}

TEST(Order, DenseAttentionDoesNotCare) {
  Problem p;
  p.n_b = 2, p.n_h = 2, p.n_q = p.n_k = 17, p.d = 4, p.scale = 0.5;
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  p.q.resize(2 * 2 * 17 * 4), p.k.resize(2 * 17 * 4), p.v.resize(p.k.size());
  for (auto* x : {&p.q, &p.k, &p.v})
    for (double& value : *x) value = normal(random);
  std::vector<std::int32_t> order(17);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const Output plain = oracle_dense(p);
  const Problem permuted = permuted_problem(p, order);
  EXPECT_NE(permuted.q, p.q);
  const Output restored = restored_output(p, oracle_dense(permuted), order);
  for (std::size_t x = 0; x < plain.o.size(); ++x) EXPECT_NEAR(restored.o[x], plain.o[x], 1e-12);
  for (std::size_t x = 0; x < plain.lse.size(); ++x)
    EXPECT_NEAR(restored.lse[x], plain.lse[x], 1e-12);
}

}  // namespace
}  // namespace lacuna::oracle
