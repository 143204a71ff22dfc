// Tile classification against brute force over every pair of the tile.
#include "compiler/expr/bounds/interval.hpp"

#include <gtest/gtest.h>

#include "tests/expr/random_expr.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

using test::ProblemSize;
using test::Random;
using test::random_parameters;

struct Tile {
  int q0, q1, k0, k1, h, b;
};

std::string describe(const Tile& tile) {
  return "q " + std::to_string(tile.q0) + ".." + std::to_string(tile.q1) + ", k " +
         std::to_string(tile.k0) + ".." + std::to_string(tile.k1) + ", h " +
         std::to_string(tile.h) + ", b " + std::to_string(tile.b);
}

Bindings bind(const Tile& tile, const ProblemSize& size, const std::vector<ParamView>& views) {
  Bindings bindings;
  bindings.parameters = views;
  bindings.set(Variable::kNQ, size.n_q);
  bindings.set(Variable::kNK, size.n_k);
  bindings.set(Variable::kNH, size.heads);
  bindings.set(Variable::kH, tile.h);
  bindings.set(Variable::kB, tile.b);
  bindings.set(Variable::kQ0, tile.q0);
  bindings.set(Variable::kQ1, tile.q1);
  bindings.set(Variable::kK0, tile.k0);
  bindings.set(Variable::kK1, tile.k1);
  return bindings;
}

struct Truth {
  bool all = true, any = false;
};

Truth brute_force(const Expr& mask, const Tile& tile, Bindings bindings) {
  Truth truth;
  for (int q = tile.q0; q <= tile.q1; ++q) {
    for (int k = tile.k0; k <= tile.k1; ++k) {
      bindings.set(Variable::kQ, q);
      bindings.set(Variable::kK, k);
      const bool visible = evaluate(mask, bindings).boolean;
      truth.all = truth.all && visible;
      truth.any = truth.any || visible;
    }
  }
  return truth;
}

Tile random_tile(Random& random, const ProblemSize& size) {
  Tile tile{};
  tile.q0 = random.below(size.n_q);
  tile.q1 = std::min(size.n_q - 1, tile.q0 + random.below(random.chance(50) ? 16 : 3));
  tile.k0 = random.below(size.n_k);
  tile.k1 = std::min(size.n_k - 1, tile.k0 + random.below(random.chance(50) ? 16 : 3));
  tile.h = random.below(size.heads);
  tile.b = random.below(size.batch);
  return tile;
}

void check_random_masks(std::uint64_t seed, int count, bool special) {
  Random random(seed);
  const ProblemSize size;
  int decided = 0;  // by looking at the tile
  for (int n = 0; n < count; ++n) {
    const auto set = random_parameters(random, size, special);
    const std::string text = test::RandomExpr(random, Site::kMask, set.symbols).text(1 + n % 5);
    const ParsedExpr parsed = parse_expr(text, Site::kMask, set.symbols);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.errors[0].message;
    const TileClassifier classifier = classify_mask(parsed.expr);
    for (int t = 0; t < 4; ++t) {
      const Tile tile = random_tile(random, size);
      const Bindings bindings = bind(tile, size, set.views);
      const bool must = evaluate(classifier.must, bindings).boolean;
      const bool may = evaluate(classifier.may, bindings).boolean;
      decided += classifier.must.nodes.size() + classifier.may.nodes.size() > 2 && (must || !may);
      if (!must && may) continue;
      const Truth truth = brute_force(parsed.expr, tile, bindings);
      ASSERT_TRUE(!must || truth.all) << text << "\nmust: " << classifier.must.text << "\n"
                                      << describe(tile);
      ASSERT_TRUE(may || !truth.any) << text << "\nmay: " << classifier.may.text << "\n"
                                     << describe(tile);
    }
  }
  EXPECT_GT(decided, count) << "many random tiles should be decided, else nothing is tested";
}

TEST(interval, is_sound_for_random_masks) { check_random_masks(7, test::draws(15000), false); }

TEST(interval, is_sound_with_infinities_and_nan_in_parameters) {
  check_random_masks(8, test::draws(15000), true);
}

/// Every tile of a grid, for masks that random text seldom hits.
void expect_sound(const char* text, const test::ParameterSet& set, const ProblemSize& size) {
  const ParsedExpr parsed = parse_expr(text, Site::kMask, set.symbols);
  ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.errors[0].message;
  const TileClassifier classifier = classify_mask(parsed.expr);
  for (int q0 = 0; q0 < size.n_q; q0 += 4) {
    for (int k0 = 0; k0 < size.n_k; k0 += 4) {
      const Tile tile{q0, std::min(q0 + 3, size.n_q - 1), k0, std::min(k0 + 3, size.n_k - 1), 0, 0};
      const Bindings bindings = bind(tile, size, set.views);
      const Truth truth = brute_force(parsed.expr, tile, bindings);
      EXPECT_TRUE(!evaluate(classifier.must, bindings).boolean || truth.all)
          << text << "\nmust: " << classifier.must.text << "\n"
          << describe(tile);
      EXPECT_TRUE(evaluate(classifier.may, bindings).boolean || !truth.any)
          << text << "\nmay: " << classifier.may.text << "\n"
          << describe(tile);
    }
  }
}

TEST(interval, is_sound_where_f32_leaves_the_numbers) {
  Random random(10);
  const ProblemSize size{1, 1, 24, 24};
  auto set = random_parameters(random, size, false);
  for (const float tau : {std::nanf(""), std::numeric_limits<float>::infinity(), 0.0f, -3.0f}) {
    set.views[0].value.f32 = tau;
    for (const char* text : {
             "abs(q + tau) >= 0",
             "exp(q * 100) - exp(k * 100) <= inf",
             "select(q < 5, tau, 1) >= 0",
             "select(q < 5, 1, tau) >= 0",
             "sqrt(q - 5) <= 100",
             "not sqrt(q - 5) > 100",
             "log(k - 7) <= 100",
             "(q - 6) * tau <= inf",
             "max((q - 6) * tau, 0) <= 1",
             "q / (k - 6) > 0",
             "q / tau <= inf",
             "(q + tau) * (k - 3) != 1",
             "floor(q * tau) == ceil(k / tau)",
         }) {
      expect_sound(text, set, size);
    }
  }
}

TEST(interval, classifiers_are_expressions_of_the_tile) {
  Random random(9);
  const auto set = random_parameters(random, {}, false);
  for (int n = 0; n < 2000; ++n) {
    const std::string text = test::RandomExpr(random, Site::kMask, set.symbols).text(1 + n % 5);
    const TileClassifier classifier =
        classify_mask(parse_expr(text, Site::kMask, set.symbols).expr);
    for (const Expr& expr : {classifier.must, classifier.may}) {
      const ParsedExpr again = parse_expr(expr.text, Site::kTile, set.symbols);
      if (again.errors.size() == 1 && again.errors[0].code == Code::kExprTooComplex) continue;
      ASSERT_TRUE(again.ok()) << text << "\n" << expr.text << "\n" << again.errors[0].message;
      ASSERT_EQ(again.expr, expr) << text << "\n" << expr.text << "\n" << print_expr(again.expr);
    }
  }
}

/// must == all visible and may == any visible, for every tile of a grid.
void expect_exact(const Expr& mask, const std::vector<ParamView>& views, const ProblemSize& size) {
  const TileClassifier classifier = classify_mask(mask);
  for (int q0 = 0; q0 < size.n_q; q0 += 8) {
    for (int k0 = 0; k0 < size.n_k; k0 += 4) {
      const Tile tile{q0,
                      std::min(q0 + 7, size.n_q - 1),
                      k0,
                      std::min(k0 + 3, size.n_k - 1),
                      q0 % size.heads,
                      k0 % size.batch};
      const Bindings bindings = bind(tile, size, views);
      const Truth truth = brute_force(mask, tile, bindings);
      EXPECT_EQ(evaluate(classifier.must, bindings).boolean, truth.all)
          << mask.text << "\nmust: " << classifier.must.text << "\n"
          << describe(tile);
      EXPECT_EQ(evaluate(classifier.may, bindings).boolean, truth.any)
          << mask.text << "\nmay: " << classifier.may.text << "\n"
          << describe(tile);
    }
  }
}

void expect_exact(const char* text, const std::vector<ProblemSize>& sizes) {
  Random random(11);
  for (const ProblemSize& size : sizes) {
    const auto set = random_parameters(random, size, false);
    const ParsedExpr parsed = parse_expr(text, Site::kMask, set.symbols);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.errors[0].message;
    expect_exact(parsed.expr, set.views, size);
  }
}

const std::vector<ProblemSize> kSizes = {
    {1, 2, 64, 64}, {2, 3, 40, 57}, {2, 1, 57, 40}, {1, 1, 1, 33}};

TEST(interval, is_exact_for_causal) {
  expect_exact("k <= q", kSizes);
  expect_exact("k <= q + n_k - n_q", kSizes);
  expect_exact("q + n_k - n_q - k >= 0", kSizes);
  expect_exact("not k > q + n_k - n_q", kSizes);
}

TEST(interval, is_exact_for_windows) {
  expect_exact("abs(q - k) < 9", kSizes);
  expect_exact("q - k < window", kSizes);
  expect_exact("q - k < 12.5", kSizes);
  expect_exact("k < 8 or q - k < 16", kSizes);  // the sink ends at a tile
  expect_exact("k <= q and (k < 8 or q - k < 16)", {{1, 2, 64, 64}});
}

TEST(interval, is_exact_for_documents) {
  expect_exact("k >= start[q]", kSizes);
  expect_exact("k >= start[q] and true", kSizes);
  expect_exact("level[k] > tau", kSizes);
}

TEST(interval, is_exact_for_blocks_and_strides) {
  expect_exact("q // 16 >= k // 8", kSizes);
  expect_exact("k % 4 < 5", kSizes);
  expect_exact("(q - k) % 4 == 0", kSizes);  // dilated
  expect_exact("(q - k) % 16 < 4", kSizes);  // dilated in blocks
  expect_exact("(q - k) % 64 < 32", kSizes);
  expect_exact("(q - k) // 3 == 2", {{1, 1, 64, 64}});
}

TEST(interval, is_exact_where_products_of_parameters_are_added_to_tokens) {
  expect_exact("(q + h * window) // 8 >= k // 4", kSizes);
  expect_exact("k - window * window - n_h * window <= q", kSizes);
  // A product that has wrapped to what no index is decides nothing.
  const ProblemSize size{1, 1, 8, 8};
  const std::vector<std::int32_t> far = {46341};
  const std::vector<ParamSymbol> symbols = {{"far", ExprType::kI32, {}, false}};
  const ParsedExpr parsed = parse_expr("q + far * far < k", Site::kMask, symbols);
  ASSERT_TRUE(parsed.ok());
  const TileClassifier classifier = classify_mask(parsed.expr);
  const std::vector<ParamView> views = {{.data = far.data()}};
  const Bindings bindings = bind({0, 7, 0, 7, 0, 0}, size, views);
  EXPECT_FALSE(evaluate(classifier.must, bindings).boolean);
  EXPECT_TRUE(evaluate(classifier.may, bindings).boolean);
}

TEST(interval, is_exact_for_chunks_of_a_parameter) {
  const std::vector<ParamSymbol> symbols = {{"chunk", ExprType::kI32, {}, false, 1}};
  const auto expect_of_chunk = [&](const char* text, std::int32_t chunk) {
    const ParsedExpr parsed = parse_expr(text, Site::kMask, symbols);
    ASSERT_TRUE(parsed.ok()) << text;
    std::vector<ParamView> views(1);
    views[0].value.i32 = chunk;
    for (const ProblemSize& size : kSizes) expect_exact(parsed.expr, views, size);
  };
  for (const std::int32_t chunk : {1, 3, 8, 13, 16, 100}) {
    expect_of_chunk("k // chunk >= q // chunk - 2", chunk);
    expect_of_chunk("k <= q and q // chunk - k // chunk < 2", chunk);
  }
  // A chunk that is no index, but longer than any sequence.
  for (const std::int32_t chunk : {1, 3, 8, 13, 16, 100, 2147483647}) {
    expect_of_chunk("k // chunk == q // chunk", chunk);
    expect_of_chunk("k // chunk <= q // chunk", chunk);
    expect_of_chunk("k <= q + n_k - n_q and (q + n_k - n_q) // chunk == k // chunk", chunk);
    expect_of_chunk("k <= q and k >= q - q % chunk", chunk);
  }
}

/// Declared ranges: of the second, a quotient times the chunk fits i32.
TEST(interval, is_exact_for_chunks_of_any_range) {
  for (const std::int32_t most : {1 << 20, 40}) {
    const std::vector<ParamSymbol> symbols = {{"chunk", ExprType::kI32, {}, false, 1, most}};
    for (const char* text : {"k // chunk <= q // chunk", "k // chunk == q // chunk",
                             "q // chunk - k // chunk < 2", "k // chunk > q // chunk - 3"}) {
      const ParsedExpr parsed = parse_expr(text, Site::kMask, symbols);
      ASSERT_TRUE(parsed.ok()) << text;
      std::vector<ParamView> views(1);
      for (const std::int32_t chunk : {1, 7, 16, 40}) {
        views[0].value.i32 = chunk;
        for (const ProblemSize& size : kSizes) expect_exact(parsed.expr, views, size);
      }
    }
  }
}

TEST(interval, is_sound_where_a_chunk_may_be_negative) {
  Random random(12);
  const ProblemSize size{1, 1, 24, 24};
  auto set = random_parameters(random, size, false);
  for (const std::int32_t limit : {-5, -1, 0, 1, 7}) {
    set.views[2].value.i32 = limit;
    for (const char* text : {"k // limit == q // limit", "k // limit <= q // limit",
                             "k >= q - q % limit", "k <= q - q % limit + limit"})
      expect_sound(text, set, size);
  }
}

struct Classified {
  const char *mask, *must, *may;
};

TEST(interval, prints_as_a_person_would_write_it) {
  const std::vector<ParamSymbol> parameters = {
      {"start", ExprType::kI32, {ParamAxis::kNQ}, true},
      {"document", ExprType::kI32, {ParamAxis::kNK}, false},
      {"slope", ExprType::kF32, {ParamAxis::kHeads}, false},
      {"chunk", ExprType::kI32, {}, false, 1},
  };
  for (const Classified& row : std::vector<Classified>{
           {"true", "true", "true"},
           {"k <= q + n_k - n_q", "k1 <= q0 + n_k - n_q", "k0 <= q1 + n_k - n_q"},
           {"k < 128 or q - k < 4096", "k1 < 128 or q1 - k0 < 4096", "k0 < 128 or q0 - k1 < 4096"},
           {"k >= start[q]", "k0 >= start[q1]", "k1 >= start[q0]"},
           {"not (k > q or h == 0)", "not (k1 > q0 or h == 0)", "not (k0 > q1 or h == 0)"},
           {"q // 64 == k // 64", "q0 // 64 == k1 // 64 and q1 // 64 == k0 // 64",
            "q0 // 64 <= k1 // 64 and k0 // 64 <= q1 // 64"},
           {"q // chunk <= k // chunk", "k0 >= q1 - q1 % chunk", "k1 >= q0 - q0 % chunk"},
           {"document[q] == document[k]", "false", "true"},
           {"q * 1103515245 % 100 < 3", "false", "true"},
           {"q * slope < 1", "abs(slope) < inf and max(q0 * slope, q1 * slope) < 1.0",
            "not abs(slope) < inf or min(q0 * slope, q1 * slope) < 1.0"},
       }) {
    const ParsedExpr parsed = parse_expr(row.mask, Site::kMask, parameters);
    ASSERT_TRUE(parsed.ok()) << row.mask;
    const TileClassifier classifier = classify_mask(parsed.expr);
    EXPECT_EQ(classifier.must.text, row.must) << row.mask;
    EXPECT_EQ(classifier.may.text, row.may) << row.mask;
  }
  EXPECT_EQ(classify_mask(Expr{}).must.text, "true");
  EXPECT_EQ(classify_mask(Expr{}).may.text, "true");
}

TEST(interval, stays_short_where_bounds_would_explode) {
  std::string text = "q - k";
  for (int n = 0; n < 12; ++n) text = "(" + text + ") * (k - " + std::to_string(n) + ")";
  const TileClassifier classifier = classify_mask(parse_expr(text + " > 0", Site::kMask, {}).expr);
  EXPECT_LT(classifier.must.nodes.size(), 1000u);
  EXPECT_LT(classifier.may.text.size(), 20000u);
}

}  // namespace
}  // namespace lacuna
