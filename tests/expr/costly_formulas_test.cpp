// Which formulas are too long to stand in a kernel once for each score.
#include "compiler/expr/parts/costly_formulas.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

Expr parse_with_tables(const std::string& text, Site site) {
  const std::vector<ParamSymbol> parameters = {
      {"width", ExprType::kI32, {}, false},
      {"codes_q", ExprType::kI32, {ParamAxis::kNQ, ParamDim(ParamAxis::kFixed, 8)}, false},
      {"codes", ExprType::kI32, {ParamAxis::kNK, ParamDim(ParamAxis::kFixed, 8)}, false},
      {"pairs", ExprType::kF32, {ParamAxis::kNQ, ParamAxis::kNK}, false},
      {"of_key", ExprType::kI32, {ParamAxis::kNK}, false},
      {"table",
       ExprType::kF32,
       {ParamDim(ParamAxis::kFixed, 31), ParamDim(ParamAxis::kFixed, 31)},
       false},
  };
  const ParsedExpr result = parse_expr(text, site, parameters);
  EXPECT_TRUE(result.ok()) << text;
  return result.expr;
}
Expr long_score(const std::string& text) { return parse_with_tables(text, Site::kScore); }
Expr long_mask(const std::string& text) { return parse_with_tables(text, Site::kMask); }

TEST(costly_formulas, are_those_of_many_instructions_for_each_score) {
  EXPECT_FALSE(formula_is_costly({}));
  EXPECT_FALSE(formula_is_costly(long_score("30 * tanh(s / 30)")));
  EXPECT_FALSE(formula_is_costly(long_score("s + pairs[q, k]")));
  const std::string place = "codes[k, 0] * codes_q[q, 0]";
  EXPECT_FALSE(formula_is_costly(long_score("s + table[0, " + place + "]")));
  EXPECT_TRUE(formula_is_costly(long_score("s + table[0, " + place +
                                           "] + table[1, codes[k, 1] * codes_q[q, 1]] + table[2, "
                                           "codes[k, 2] * codes_q[q, 2]]")));
}

// Elements in a line are read in pairs, one by one, or by their indices.
TEST(costly_formulas, stand_in_a_kernel_for_each_way_to_read_their_elements) {
  const std::string rest = "table[0, codes[k, 0] * codes_q[q, 0]]";
  const int alone = formula_lengths(long_score("s + " + rest)).of_score;
  EXPECT_GT(alone, 0);
  EXPECT_EQ(formula_lengths(long_score("s + pairs[q, k] + " + rest)).of_score, 3 * (alone + 1));
  EXPECT_EQ(formula_lengths(long_score("s + pairs[q, 2 * k] + " + rest)).of_score, 2 * (alone + 1));
}

TEST(costly_formulas, are_elements_with_many_divisions_in_their_indices) {
  EXPECT_FALSE(indices_are_costly(long_score("s + pairs[q, k]")));
  EXPECT_TRUE(indices_are_costly(
      long_score("s + table[q // width - k // width + 15, q % width - k % width + 15]")));
}

TEST(costly_formulas, are_masks_that_ask_for_many_elements) {
  EXPECT_FALSE(mask_is_costly({}));
  EXPECT_FALSE(mask_is_costly(long_mask("codes_q[q, 0] == codes[k, 0]")));
  std::string text = "codes_q[q, 0] == codes[k, 0]";
  for (int n = 1; n < 4; ++n)
    text += " or codes_q[q, " + std::to_string(n) + "] == codes[k, " + std::to_string(n) + "]";
  EXPECT_TRUE(mask_is_costly(long_mask(text)));
}

// A divisor that no token changes has its reciprocal prepared.
TEST(costly_formulas, count_a_division_by_what_it_takes) {
  const int by_literal = mask_length(long_mask("k % 3 == q")),
            prepared = mask_length(long_mask("k % width == q")),
            any = mask_length(long_mask("k % of_key[k] == q")) -
                  mask_length(long_mask("of_key[k] == q"));
  EXPECT_LT(by_literal, prepared);
  EXPECT_LT(prepared, any);
}

}  // namespace
}  // namespace lacuna
