// Which quotients and roots of a formula may be approximate.
#include "compiler/expr/nodes/deciding_nodes.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"
#include "compiler/expr/text/print_cuda.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kScoreParams = {
    {"c", ExprType::kF32, {}, false},
    {"age", ExprType::kF32, {ParamAxis::kNK}, false},
};

std::string approximated(const std::string& text, bool approximates = true) {
  const ParsedExpr result = parse_expr(text, Site::kScore, kScoreParams);
  EXPECT_TRUE(result.ok()) << text;
  CudaNames names{.variable = [](Variable v) { return std::string(info(v).name); },
                  .parameter = [](const ParamSymbol& symbol) { return symbol.name; }};
  names.approximates = approximates;
  return print_cuda(result.expr, names);
}

TEST(deciding_nodes, leave_quotients_and_roots_that_only_become_part_of_the_value) {
  EXPECT_EQ(approximated("s / (1 + exp(-s))"),
            "lacuna::divide_approx(s, 1.0f + lacuna::exp_approx(-s))");
  EXPECT_EQ(approximated("max(sqrt(abs(s)), c) * 2"),
            "fmaxf(lacuna::sqrt_approx(fabsf(s)), lacuna::at(c)) * 2.0f");
  EXPECT_EQ(approximated("select(s > c, s / c, s)"),
            "s > lacuna::at(c) ? lacuna::divide_approx(s, lacuna::at(c)) : s");
}

TEST(deciding_nodes, are_below_what_compares_rounds_or_indexes) {
  EXPECT_EQ(approximated("select(s / c > 1, s, 0)"), "s / lacuna::at(c) > 1.0f ? s : 0.0f");
  EXPECT_EQ(approximated("floor(s / c)"), "floorf(s / lacuna::at(c))");
  EXPECT_EQ(approximated("s + int(sqrt(c))"), "s + float(lacuna::to_i32(sqrtf(lacuna::at(c))))");
  EXPECT_EQ(approximated("s + age[int(c / 3.5 / s)]"),
            "s + lacuna::at(age, lacuna::to_i32(lacuna::divide_by(lacuna::at(c), 3.5f) / s))");
}

TEST(deciding_nodes, decide_nothing_where_values_have_to_be_exact) {
  EXPECT_EQ(approximated("s / c + sqrt(c)", false), "s / lacuna::at(c) + sqrtf(lacuna::at(c))");
}

/// A quotient that is read in two places and compared in one of them is exact in both.
TEST(deciding_nodes, are_those_of_any_reader) {
  const ParsedExpr result =
      parse_expr("select(s / c > 1, s / c, 1 / c)", Site::kScore, kScoreParams);
  ASSERT_TRUE(result.ok());
  const std::vector<bool> decides = deciding_nodes(result.expr);
  int exact = 0, free = 0;
  for (std::size_t id = 0; id < decides.size(); ++id) {
    if (result.expr.nodes[id].op != ExprOp::kDivide) continue;
    ++(decides[id] ? exact : free);
  }
  EXPECT_EQ(exact, 1);
  EXPECT_EQ(free, 1);
}

}  // namespace
}  // namespace lacuna
