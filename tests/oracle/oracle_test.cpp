// The oracle against closed forms: a judge must be judged too.
#include "tests/oracle/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

Problem random_problem(int n_q, int n_k, int d, unsigned seed) {
  Problem p;
  p.n_h = 2, p.n_q = n_q, p.n_k = n_k, p.d = d, p.scale = 1 / std::sqrt(d);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  p.q.resize(static_cast<std::size_t>(p.n_h * n_q * d));
  p.k.resize(static_cast<std::size_t>(n_k * d)), p.v.resize(p.k.size());
  for (double& x : p.q) x = normal(random);
  for (double& x : p.k) x = normal(random);
  for (double& x : p.v) x = normal(random);
  return p;
}

TEST(Oracle, OneKeyGivesItsValue) {
  Problem p = random_problem(3, 1, 4, 1);
  const Output out = oracle_dense(p);
  for (std::size_t x = 0; x < out.o.size(); ++x) EXPECT_DOUBLE_EQ(out.o[x], p.v[x % 4]);
  EXPECT_NEAR(out.lse[0],
              p.scale * (p.q[0] * p.k[0] + p.q[1] * p.k[1] + p.q[2] * p.k[2] + p.q[3] * p.k[3]),
              1e-12);
}

TEST(Oracle, EqualKeysGiveTheMeanOfTheVisibleValues) {
  Problem p = random_problem(4, 4, 2, 2);
  std::fill(p.k.begin(), p.k.end(), 1.0);
  p.mask = [](int q, int k, int, int) { return k <= q; };
  const Output out = oracle_dense(p);
  for (int q = 0; q < 4; ++q) {
    double mean = 0;
    for (int k = 0; k <= q; ++k) mean += p.v[static_cast<std::size_t>(2 * k)] / (q + 1);
    EXPECT_NEAR(out.o[static_cast<std::size_t>(2 * q)], mean, 1e-12);
  }
}

TEST(Oracle, AllTilesVisitedIsDense) {
  Problem p = random_problem(37, 53, 8, 3);
  p.mask = [](int q, int k, int, int) { return (q + k) % 3 != 0; };
  const Tiling tiling{16, 16, false, {}};
  const TileDecisions tiles = oracle_tiles(p, tiling, std::nullopt);
  EXPECT_EQ(tiles.visible, 2 * 3 * 4);
  const Output a = oracle_attention(p, tiling, std::nullopt, tiles.code), b = oracle_dense(p);
  EXPECT_EQ(a.o, b.o);
  EXPECT_EQ(a.lse, b.lse);
}

TEST(Oracle, ARowWithoutKeysIsZeroAndMinusInfinity) {
  Problem p = random_problem(5, 6, 4, 4);
  p.mask = [](int q, int, int, int) { return q != 2; };
  const Output out = oracle_dense(p);
  EXPECT_EQ(out.lse[2], -kInfinity);
  for (std::size_t x = 2 * 4; x < 3 * 4; ++x) EXPECT_EQ(out.o[x], 0.0);
  EXPECT_TRUE(std::isfinite(out.lse[1]));
}

TEST(Oracle, ASinkIsAKeyWithoutAValue) {
  Problem with_key = random_problem(5, 6, 4, 4), with_sink = with_key;
  with_sink.n_k = 5;
  with_sink.k.resize(5 * 4), with_sink.v.resize(5 * 4);
  std::fill(with_key.v.begin() + 5 * 4, with_key.v.end(), 0.0);
  with_key.mask = [](int q, int k, int, int) { return q != 2 || k == 5; };
  with_sink.mask = [](int q, int, int, int) { return q != 2; };
  with_key.score = [](double s, int q, int k, int, int) { return k == 5 ? q - 3.5 : s; };
  with_sink.sink = [](int q, int, int) { return q - 3.5; };
  const Output a = oracle_dense(with_key), b = oracle_dense(with_sink);
  for (std::size_t x = 0; x < a.o.size(); ++x) EXPECT_NEAR(a.o[x], b.o[x], 1e-12);
  for (std::size_t q = 0; q < 5; ++q) EXPECT_NEAR(a.lse[q], b.lse[q], 1e-12);
  EXPECT_EQ(b.lse[2], -1.5);
  with_sink.lse_is_base_2 = true;
  const Output bits = oracle_dense(with_sink);
  for (std::size_t q = 0; q < 5; ++q) EXPECT_NEAR(std::exp2(bits.lse[q]), std::exp(b.lse[q]), 1e-9);
}

GateRule constant_gate(bool skip, bool skips_exp, Scope scope) {
  GateRule gate;
  gate.scope = scope, gate.skips_exp = skips_exp;
  gate.skip = [skip](double, double, const TileIndex&) { return skip; };
  gate.margin = [](double, double, const TileIndex&) { return 1.0; };
  return gate;
}

TEST(Oracle, AGateThatAlwaysSkipsLeavesTheFirstVisitedTile) {
  const Problem p = random_problem(20, 40, 4, 5);
  for (const bool descending : {false, true}) {
    const Tiling tiling{16, 8, descending, {}};
    const auto gate = constant_gate(true, true, Scope::kTile);
    const TileDecisions tiles = oracle_tiles(p, tiling, gate);
    for (std::size_t x = 0; x < tiles.code.size(); ++x)
      EXPECT_EQ(int{tiles.code[x]}, x % 5 == (descending ? 4U : 0U) ? 1 : 2);
    Problem first = p;
    first.mask = [descending](int, int k, int, int) { return descending ? k >= 32 : k < 8; };
    EXPECT_EQ(oracle_attention(p, tiling, gate, tiles.code).o, oracle_dense(first).o);
  }
}

TEST(Oracle, SkippingOnlyPvKeepsTheDenominator) {
  const Problem p = random_problem(16, 32, 4, 6);
  const Tiling tiling{16, 16, false, {}};
  for (const Scope scope : {Scope::kTile, Scope::kWarp}) {
    const auto gate = constant_gate(true, false, scope);
    const TileDecisions tiles = oracle_tiles(p, tiling, gate);
    const Output gated = oracle_attention(p, tiling, gate, tiles.code), dense = oracle_dense(p);
    for (std::size_t x = 0; x < dense.lse.size(); ++x)
      EXPECT_NEAR(gated.lse[x], dense.lse[x], 1e-12);
    EXPECT_NE(gated.o, dense.o);
  }
}

TEST(Oracle, WarpsDecideAlone) {
  Problem p = random_problem(32, 32, 4, 7);
  p.n_h = 1, p.q.resize(32 * 4);
  GateRule gate = constant_gate(true, true, Scope::kWarp);
  // Rows 16..31 look at huge logits, so only the first warp stays below the threshold.
  for (std::size_t x = 16 * 4; x < p.q.size(); ++x) p.q[x] *= 1000;
  gate.skip = [](double tile_max, double, const TileIndex&) { return tile_max < 50; };
  const Tiling tiling{32, 16, false, {}};
  const TileDecisions tiles = oracle_tiles(p, tiling, gate);
  EXPECT_EQ(tiles.code, (std::vector<std::uint8_t>{1, 1}));
  Problem first = p;
  first.mask = [](int q, int k, int, int) { return q >= 16 || k < 16; };
  EXPECT_EQ(oracle_attention(p, tiling, gate, tiles.code).o, oracle_dense(first).o);
}

TEST(Oracle, HeadsShareTheirKeyValueHead) {
  Problem p = random_problem(8, 8, 4, 8);
  Problem repeated = p;
  repeated.n_h_kv = 2;
  repeated.k.insert(repeated.k.end(), p.k.begin(), p.k.end());
  repeated.v.insert(repeated.v.end(), p.v.begin(), p.v.end());
  EXPECT_EQ(oracle_dense(p).o, oracle_dense(repeated).o);
}

}  // namespace
}  // namespace lacuna::oracle
