// The interpreter against a naive fp64 reference, method by method.
#include "runtime/cpu/interpreter/interpreter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/runtime/cpu/interpreter_harness.hpp"

namespace lacuna {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const std::string kSmallTiles =
    R"json({"version": 1, "name": "dense", "tile": {"q": 32, "k": 16}})json";

const std::string kCausal =
    R"json({"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"},
        "tile": {"q": 32, "k": 16}})json";

bool causal(const Shape& s, int q, int k) { return k <= q + s.n_k - s.n_q; }

TEST(Interpreter, DenseForEveryTypeShapeAndHeadDim) {
  const Shape shapes[] = {{1, 1, 1, 1, 1, 64},    {2, 4, 2, 33, 65, 64}, {1, 2, 1, 15, 127, 80},
                          {1, 3, 3, 129, 16, 24}, {3, 2, 2, 7, 63, 8},   {1, 8, 1, 64, 64, 128}};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " n_q=" << shape.n_q
                                      << " n_k=" << shape.n_k << " d=" << shape.d);
      Trial run(kSmallTiles, shape, dtype);
      run.run();
      run.expect_equal({});
    }
  }
}

TEST(Interpreter, CausalIsAlignedAtTheEndAndEmptyRowsAreZero) {
  for (const auto& [n_q, n_k] : {std::pair{70, 70}, {40, 90}, {90, 40}, {1, 50}}) {
    const Shape shape{2, 2, 1, n_q, n_k, 16};
    SCOPED_TRACE(testing::Message() << "n_q=" << n_q << " n_k=" << n_k);
    Trial run(kCausal, shape);
    run.run();
    run.expect_equal({.mask = [&](int q, int k, int, int) { return causal(shape, q, k); }});
    for (int q = 0; q < n_q - n_k; ++q) {
      EXPECT_EQ(run.lse[static_cast<std::size_t>(q)], -std::numeric_limits<float>::infinity());
      EXPECT_EQ(run.o.get(DType::kF32, 0, 0, q, 0), 0.0F);
    }
  }
}

TEST(Interpreter, ScoreIsAppliedBeforeTheSoftmaxAndPerHead) {
  const Shape shape{1, 3, 1, 50, 50, 16};
  Trial run(R"json({"version": 1, "name": "cap", "attention": {"mask": "k <= q",
              "score": "2 * tanh(s / 2) + slope * (k - q)"
}
, "params" : {"slope" : {"shape" : "[heads]", "default" : 0, "doc" : "bias per token"}}, "tile" : {
  "q" : 32, "k" : 16
}
})json",
            shape);
  const std::vector<float> slope = {0.5F, 0.03F, -0.1F};
  run.set_param("slope", slope.data(), {3});
  run.run();
  run.expect_equal({.mask = [](int q, int k, int, int) { return k <= q; },
                    .score =
                        [&](double s, int q, int k, int h, int) {
                          return 2 * std::tanh(s / 2) +
                                 double{slope[static_cast<std::size_t>(h)]} * (k - q);
                        }});
}

TEST(Interpreter, TokenParametersDelimitDocuments) {
  const Shape shape{1, 1, 1, 100, 100, 16};
  Trial run(R"json({"version": 1, "name": "documents",
              "attention": {"mask": "k >= start[q] and k <= q"},
              "params": {"start": {"type": "i32", "shape": "[n_q]", "default": 0,
                                   "monotone": true, "doc": "first token of the document"}},
              "tile": {"q": 16, "k": 16}})json",
            shape);
  std::vector<std::int32_t> start(100);
  for (int q = 0; q < 100; ++q) start[static_cast<std::size_t>(q)] = q < 37 ? 0 : q < 64 ? 37 : 64;
  run.set_param("start", start.data(), {100});
  run.run();
  run.expect_equal({.mask = [&](int q, int k, int, int) {
    return k >= start[static_cast<std::size_t>(q)] && k <= q;
  }});
  EXPECT_LT(std::count(run.tiles.begin(), run.tiles.end(), 1), 7 * 8 / 2) << "tiles are left out";
}

TEST(Interpreter, PairsSayWhichTilesOfDocumentsInNoOrderAreVisited) {
  const Shape shape{1, 2, 1, 90, 110, 16};
  Trial run(R"json({"version": 1, "name": "documents",
              "attention": {"mask": "of_query[q] == of_key[k] or k == h"},
              "params": {"of_query": {"type": "i32", "shape": "[n_q]", "default": 0},
                         "of_key": {"type": "i32", "shape": "[n_k]", "default": 0}},
              "tile": {"q": 16, "k": 16}})json",
            shape);
  std::vector<std::int32_t> of_query(90), of_key(110);
  for (std::size_t q = 0; q < 90; ++q) of_query[q] = q < 32 ? 7 : q < 70 ? -2 : 7;
  for (std::size_t k = 0; k < 110; ++k) of_key[k] = k < 48 ? -2 : k < 96 ? 7 : 100;
  run.set_param("of_query", of_query.data(), {90});
  run.set_param("of_key", of_key.data(), {110});
  run.run();
  run.expect_equal({.mask = [&](int q, int k, int h, int) {
    return of_query[static_cast<std::size_t>(q)] == of_key[static_cast<std::size_t>(k)] || k == h;
  }});
  EXPECT_LT(std::count(run.tiles.begin(), run.tiles.end(), 1), 2 * 6 * 7 * 3 / 4);
}

TEST(Interpreter, TileGateWithThresholdsDescending) {
  const Shape shape{2, 2, 1, 120, 120, 16};
  Trial run(R"json({"version": 1, "name": "bsfa", "attention": {"mask": "k <= q + n_k - n_q"},
              "params": {"threshold": {"shape": "[heads, q_tiles]", "default": "-inf",
                                       "doc": "skip below"}},
              "gate": {"scope": "tile", "skip": "tile_max < threshold", "exempt": "k1 >= q0",
                       "skips": ["v_load", "exp", "pv"]},
              "tile": {"q": 32, "k": 16, "order": "descending"}})json",
            shape);
  const std::vector<float> threshold = {2.4F, 2.6F, 2.8F, 3.0F, 9.0F, 9.0F, 9.0F, -9.0F};
  run.set_param("threshold", threshold.data(), {2, 4});
  run.run();
  run.expect_equal(
      {.mask = [&](int q, int k, int, int) { return causal(shape, q, k); },
       .gate = ReferenceGate{
           .skips_exp = true, .skips = [&](double tile_max, double, int h, const TileBounds& t) {
             return tile_max < threshold[static_cast<std::size_t>(h * 4 + t.i)] && t.k1 < t.q0;
           }}});
  EXPECT_GT(std::count(run.tiles.begin(), run.tiles.end(), 2), 0);
  EXPECT_GT(std::count(run.tiles.begin(), run.tiles.end(), 1), 0);
}

TEST(Interpreter, WarpGateOnTheGapOfPvAlone) {
  const Shape shape{1, 2, 2, 90, 200, 16};  // the last tile of queries has 26 rows: 16 + 10
  Trial run(R"json({"version": 1, "name": "gap", "params": {"lambda": {"shape": "[heads]",
              "default": 0, "doc": "skip when trailing by more"}},
              "gate": {"scope": "warp", "skip": "gap < lambda", "skips": ["pv"]},
              "tile": {"q": 64, "k": 16}})json",
            shape);
  const std::vector<float> lambda = {-0.2F, 0.3F};
  run.set_param("lambda", lambda.data(), {2});
  run.run();
  run.expect_equal(
      {.gate = ReferenceGate{.scope_rows = 16,
                             .skips_exp = false,
                             .skips = [&](double, double gap, int h, const TileBounds&) {
                               return gap < lambda[static_cast<std::size_t>(h)];
                             }}});
  EXPECT_GT(std::count(run.tiles.begin(), run.tiles.end(), 2), 0);
}

TEST(Interpreter, FirstVisitedTileIsNeverGated) {
  const Shape shape{1, 1, 1, 40, 64, 16};
  for (const char* order : {"ascending", "descending"}) {
    Trial run(std::string(R"json({"version": 1, "name": "all", "gate": {"scope": "tile",
                "skip": "tile_max < 1e30", "skips": ["exp", "pv"]},
                "tile": {"q": 32, "k": 16, "order": ")json") +
                  order + "\"}}",
              shape);
    run.run();
    run.expect_equal({.gate = ReferenceGate{
                          .skips_exp = true,
                          .skips = [](double, double, int, const TileBounds&) { return true; }}});
    const bool ascending = std::string(order) == "ascending";
    EXPECT_EQ(run.tiles[0], ascending ? 1 : 2);
    EXPECT_EQ(run.tiles[3], ascending ? 2 : 1);
  }
}

const std::string kListed =
    R"json({"version": 1, "name": "listed", "mask": "external",
        "attention": {"mask": "k <= q"}, "tile": {"q": 16, "k": 16}})json";

TEST(Interpreter, VisitsTheTilesOfTheListAndMasksThoseWithTheFlag) {
  constexpr std::int32_t kMask = std::numeric_limits<std::int32_t>::min();
  const Shape shape{1, 2, 1, 48, 64, 16};
  Trial run(kListed, shape);
  run.list_indices = {0 | kMask, -1,        -1,    // head 0: the diagonal
                      0,         1 | kMask, -1,    //
                      -1,        -1,        -1,    // nothing at all
                      3 | kMask, -1,        -1,    // head 1: listed, but nothing in it is visible
                      0,         77,        1000,  // indices outside are ignored
                      0,         1,         2 | kMask};
  run.list_counts = {1, 2, 0, 1, 3, 3};
  run.run();
  run.expect_equal({.mask = [](int q, int k, int, int) { return k <= q; },
                    .listed =
                        [](int h, int i, int j) {
                          if (h == 0) return i < 2 && j <= i;
                          return i == 0 ? j == 3 : i == 1 ? j == 0 : j <= 2;
                        }});
}

TEST(Interpreter, ListedTilesWithoutTheFlagAreNotMasked) {
  const Shape shape{1, 1, 1, 16, 16, 16};
  Trial run(kListed, shape);
  run.list_indices = {0};
  run.list_counts = {1};
  run.run();
  run.expect_equal({});
}

TEST(Interpreter, NanInAQueryStaysInItsRow) {
  const Shape shape{1, 1, 1, 40, 40, 16};
  Trial clean(kCausal, shape), damaged(kCausal, shape);
  damaged.q.set(DType::kF32, 0, 0, 13, 3, kNaN);
  clean.run();
  damaged.run();
  for (int q = 0; q < shape.n_q; ++q) {
    const float expected = clean.o.get(DType::kF32, 0, 0, q, 0);
    const float actual = damaged.o.get(DType::kF32, 0, 0, q, 0);
    const auto row = static_cast<std::size_t>(q);
    if (q == 13) {
      EXPECT_TRUE(std::isnan(actual));
      EXPECT_TRUE(std::isnan(damaged.lse[row]));
    } else {
      EXPECT_EQ(actual, expected) << q;
      EXPECT_EQ(damaged.lse[row], clean.lse[row]) << q;
    }
  }
}

TEST(Interpreter, NanInKeysAndValuesReachesOnlyRowsThatSeeThem) {
  const Shape shape{1, 1, 1, 40, 40, 16};
  Trial clean(kCausal, shape), damaged(kCausal, shape);
  damaged.k.set(DType::kF32, 0, 0, 21, 0, kNaN);
  damaged.v.set(DType::kF32, 0, 0, 30, 0, std::numeric_limits<float>::infinity());
  clean.run();
  damaged.run();
  for (int q = 0; q < shape.n_q; ++q) {
    const float actual = damaged.o.get(DType::kF32, 0, 0, q, 0);
    if (q < 21) {
      EXPECT_EQ(actual, clean.o.get(DType::kF32, 0, 0, q, 0)) << q;
    } else {
      EXPECT_TRUE(std::isnan(actual)) << q;
    }
  }
}

TEST(Interpreter, HugeLogitsDoNotOverflow) {
  const Shape shape{1, 1, 1, 20, 40, 16};
  Trial run(kSmallTiles, shape);
  for (int c = 0; c < shape.d; ++c) {
    for (int q = 0; q < shape.n_q; ++q) run.q.set(DType::kF32, 0, 0, q, c, q % 2 ? 1e4F : -1e4F);
  }
  run.run();
  for (int q = 0; q < shape.n_q; ++q) {
    EXPECT_TRUE(std::isfinite(run.o.get(DType::kF32, 0, 0, q, 0)));
    EXPECT_TRUE(std::isfinite(run.lse[static_cast<std::size_t>(q)]));
  }
}

TEST(Interpreter, ThreadsDoNotChangeABit) {
  const Shape shape{2, 4, 2, 70, 70, 16};
  Trial one(kCausal, shape, DType::kBF16), many(kCausal, shape, DType::kBF16);
  one.threads = 1;
  many.threads = 7;
  one.run();
  many.run();
  EXPECT_EQ(one.o.halves, many.o.halves);
  EXPECT_EQ(one.lse, many.lse);
  EXPECT_EQ(one.counts, many.counts);
}

TEST(Interpreter, NoKeysMeanEmptyRows) {
  Trial run(kSmallTiles, {1, 1, 1, 5, 0, 16});
  run.run();
  run.expect_equal({});
}

}  // namespace
}  // namespace lacuna
