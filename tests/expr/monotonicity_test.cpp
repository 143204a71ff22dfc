// How rules move: what they say, and that no random one moves otherwise.
#include "compiler/expr/bounds/monotonicity.hpp"

#include <gtest/gtest.h>

#include "tests/expr/random_expr.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kMonotonicityParameters = {
    {"a", ExprType::kF32, {}, false}, {"b", ExprType::kF32, {ParamAxis::kHeads}, false}};

Monotonicity direction(const char* text, Variable variable, Site site = Site::kGate) {
  const ParsedExpr parsed = parse_expr(text, site, kMonotonicityParameters);
  EXPECT_TRUE(parsed.ok()) << text;
  return monotonicity_of(parsed.expr, variable);
}

TEST(monotonicity, of_rules_as_gates_have_them) {
  for (const char* const falls :
       {"gap < a", "a > gap", "not (gap >= a)", "gap < a and j != 0", "gap < a or tile_max < b",
        "a - gap > 0", "max(gap, tile_max) <= a", "exp(gap) < a", "i == j or -gap > -a",
        "gap * 1.5 < a", "-0.5 * gap > a", "gap / 2 < a", "a > exp2(1.25 * gap) * 3"}) {
    EXPECT_EQ(direction(falls, Variable::kGap), Monotonicity::kFalls) << falls;
  }
  for (const char* const rises : {"gap > a", "not (gap < a)", "a - gap < 0", "gap >= a or j == 0"})
    EXPECT_EQ(direction(rises, Variable::kGap), Monotonicity::kRises) << rises;
  for (const char* const still : {"tile_max < a", "j == 0", "true"})
    EXPECT_EQ(direction(still, Variable::kGap), Monotonicity::kConstant) << still;
  for (const char* const anyhow :
       {"gap < a and gap > b", "a * gap < b", "gap * gap < a", "gap / a < b", "1 / gap < a",
        "0 * gap < a", "abs(gap) < a", "log(gap) < a", "select(gap < a, 1, 0) > 0"}) {
    EXPECT_EQ(direction(anyhow, Variable::kGap), Monotonicity::kUnknown) << anyhow;
  }
}

TEST(monotonicity, of_the_other_variable_is_its_own) {
  EXPECT_EQ(direction("gap < a and tile_max > b", Variable::kGap), Monotonicity::kFalls);
  EXPECT_EQ(direction("gap < a and tile_max > b", Variable::kTileMax), Monotonicity::kRises);
}

TEST(monotonicity, of_ranks_which_are_never_negative) {
  const auto along_rank = [](const char* text) {
    return direction(text, Variable::kRank, Site::kKeep);
  };
  for (const char* const falls : {"rank == 0", "0 == rank", "not (rank != 0)", "rank == -1",
                                  "rank < a * visible or rank == 0", "rank < b and similar_q < a"})
    EXPECT_EQ(along_rank(falls), Monotonicity::kFalls) << falls;
  for (const char* const rises : {"rank != 0", "not (rank == 0)", "rank >= a or rank != 0"})
    EXPECT_EQ(along_rank(rises), Monotonicity::kRises) << rises;
  for (const char* const still : {"visible == 0", "p == 0", "j != 3"})
    EXPECT_EQ(along_rank(still), Monotonicity::kConstant) << still;
  for (const char* const anyhow : {"rank == 1", "rank == visible", "rank + 1 == 0"})
    EXPECT_EQ(along_rank(anyhow), Monotonicity::kUnknown) << anyhow;
  EXPECT_EQ(direction("gap == 0", Variable::kGap), Monotonicity::kUnknown);
}

/// Which of the answers false -> true and true -> false were seen as the gap grows.
struct Turns {
  bool to_true = false, to_false = false;
};
Turns turns_along_gap(const Expr& rule, Bindings bindings) {
  Turns turns;
  bool before = false;
  for (int n = -40; n <= 40; ++n) {
    bindings.set(Variable::kGap, static_cast<float>(n) * 0.37f);
    const bool now = evaluate(rule, bindings).boolean;
    if (n > -40 && now != before) (now ? turns.to_true : turns.to_false) = true;
    before = now;
  }
  return turns;
}

TEST(monotonicity, holds_of_random_rules) {
  test::Random random(20261122);
  const test::ProblemSize size;
  int known = 0;
  for (int n = 0; n < test::draws(4000); ++n) {
    const auto set = test::random_parameters(random, size, false);
    const std::string text = test::RandomExpr(random, Site::kGate, set.symbols).text(1 + n % 4);
    const ParsedExpr parsed = parse_expr(text, Site::kGate, set.symbols);
    ASSERT_TRUE(parsed.ok()) << text;
    Bindings bindings;
    bindings.parameters = set.views;
    bindings.set(Variable::kTileMax, 4.0f * random.unit() - 2.0f);
    const Turns turns = turns_along_gap(parsed.expr, bindings);
    const Monotonicity way = monotonicity_of(parsed.expr, Variable::kGap);
    known += (turns.to_true || turns.to_false) && way != Monotonicity::kUnknown;
    EXPECT_FALSE(turns.to_false && (way == Monotonicity::kRises || way == Monotonicity::kConstant))
        << text;
    EXPECT_FALSE(turns.to_true && (way == Monotonicity::kFalls || way == Monotonicity::kConstant))
        << text;
  }
  EXPECT_GT(known, test::draws(20));
}

}  // namespace
}  // namespace lacuna
