// Which part of a rule is about one variable.
#include "compiler/expr/bounds/sole_condition.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

Expr keep(const char* text) {
  const ParsedExpr parsed = parse_expr(text, Site::kKeep, {});
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.expr;
}

TEST(sole_condition, is_the_smallest_that_has_all_reads) {
  const struct {
    const char *rule, *condition;
  } cases[] = {
      {"rank < 3", "rank < 3"},
      {"rank < 3 or j == 0", "rank < 3"},
      {"j == 0 or k1 > q0 and (i == 0 or rank < 3)", "rank < 3"},
      {"rank < 3 or i == 0 or rank == 0", "rank < 3 or i == 0 or rank == 0"},
      {"(rank < 3 or rank > 5) and j == 0", "rank < 3 or rank > 5"},
      {"not (rank < 3 and j == 0) and i == 0", "not (rank < 3 and j == 0)"},
      {"select(j == 0, rank, 2 * rank) < 4 or i == 0", "select(j == 0, rank, 2 * rank) < 4"},
  };
  for (const auto& [rule, condition] : cases) {
    const auto found = sole_condition(keep(rule), Variable::kRank);
    EXPECT_TRUE(found && *found == keep(condition)) << rule;
  }
}

TEST(sole_condition, is_none_of_what_is_not_read) {
  EXPECT_FALSE(sole_condition(keep("j == 0 and p > 0.5"), Variable::kRank).has_value());
  EXPECT_FALSE(sole_condition(Expr{}, Variable::kRank).has_value());
}

}  // namespace
}  // namespace lacuna
