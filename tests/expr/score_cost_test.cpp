// What a score formula leaves for each score, and which formulas are too long to stand in a kernel
// once for each of them.
#include "compiler/expr/parts/score_cost.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/parts/costly_formulas.hpp"
#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

/// "cost: form"
std::string score_cost_of(const std::string& text, bool shares = true) {
  const std::vector<ParamSymbol> parameters = {
      {"cap", ExprType::kF32, {}, false},
      {"slope", ExprType::kF32, {ParamAxis::kHeads}, false},
      {"bias", ExprType::kF32, {ParamAxis::kNK}, false},
      {"pairs", ExprType::kF32, {ParamAxis::kNQ, ParamAxis::kNK}, false},
  };
  const ParsedExpr result = parse_expr(text, Site::kScore, parameters);
  EXPECT_TRUE(result.ok()) << text;
  const ScoreParts parts = split_score(result.expr);
  return print_score_costs(score_costs(parts, shares)) + ": " + print_score_form(parts, shares);
}

TEST(score_cost, is_multiply_adds_where_a_row_has_the_rest) {
  EXPECT_EQ(score_cost_of("2.0 * s"), "1 FFMA for each score: factor * s");
  EXPECT_EQ(score_cost_of("s + q"), "1 FFMA for each score: s + constant in k");
  EXPECT_EQ(score_cost_of("s - slope * (q + n_k - n_q - k)"),
            "2 FFMA for each score: s + affine in k");
  EXPECT_EQ(score_cost_of("s / cap + k"), "2 FFMA for each score: factor * s + affine in k");
}

TEST(score_cost, counts_what_changes_along_a_row_by_kind) {
  EXPECT_EQ(score_cost_of("cap * tanh(s / cap)"),
            "1 FFMA, 2 other f32, 1 special for each score: factor * core");
  EXPECT_EQ(score_cost_of("s + abs(q - 2 * k)"), "2 FFMA, 4 integer for each score: s + rest");
  EXPECT_EQ(score_cost_of("select(k < 4, s, s - exp(cap))"),
            "1 FFMA, 2 other f32, 2 compare or select for each score: core");
}

TEST(score_cost, of_a_table_along_a_line_is_a_load) {
  EXPECT_EQ(score_cost_of("s + bias[2 * k - q]"),
            "2 FFMA, 1 load for each score: s + a table along a line");
  EXPECT_EQ(score_cost_of("s + cap * pairs[q, k]"),
            "2 FFMA, 1 other f32, 1 load for each score: s + a table along a line");
  EXPECT_EQ(score_cost_of("s + pairs[q, k] * abs(q + k)"),
            "2 FFMA, 1 other f32, 1 load, 3 integer for each score: s + a rest with a table along "
            "a line");
  EXPECT_EQ(score_cost_of("s + bias[(q + k) // 2]"),
            "2 FFMA, 1 load, 2 integer for each score: s + rest");
}

TEST(score_cost, of_a_table_by_places_is_a_load_and_what_a_warp_hands_on) {
  EXPECT_EQ(score_cost_of("s + pairs[q // 8, q % 8 - k % 8]"),
            "2 FFMA, 1 load, 0.5 shuffle for each score; 2 integer for each key: s + a table by "
            "places of q and of k");
}

TEST(score_cost, of_what_scores_share_is_for_each_distance_or_key) {
  EXPECT_EQ(score_cost_of("s + abs(q - k)"),
            "2 FFMA, 0.6 shuffle for each score; 3 integer for each distance: s + a part of q - k, "
            "worked out once for each distance of 16 queries");
  EXPECT_EQ(score_cost_of("s + abs(q - k)", false), "2 FFMA, 3 integer for each score: s + rest");
  EXPECT_EQ(score_cost_of("s + bias[k // 2]"),
            "2 FFMA, 0.5 shuffle for each score; 1 load, 1 integer for each key: s + a part of k, "
            "worked out once for each key of 16 queries");
  EXPECT_EQ(score_cost_of("s + bias[k] + abs(q - k)"),
            "2 FFMA, 1 other f32, 1.1 shuffle for each score; 3 integer for each distance; 1 load "
            "for each key: s + a part of q - k and a part of k, worked out once for each distance "
            "and key "
            "of 16 queries");
  EXPECT_EQ(score_cost_of("s + bias[k] * abs(q + k)"),
            "2 FFMA, 1 other f32, 3 integer, 0.5 shuffle for each score; 1 load for each key: s + "
            "a rest with a part of k, worked out once for each key of 16 queries");
}

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
FormulaLengths lengths_of(const Expr& score) {
  return formula_lengths(score.empty() ? ScoreParts() : split_score(score));
}
bool formula_is_costly(const Expr& score) { return lengths_of(score).is_costly(); }
bool indices_are_costly(const Expr& score) { return lengths_of(score).has_costly_indices(); }
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
  const int alone = lengths_of(long_score("s + " + rest)).of_score;
  EXPECT_GT(alone, 0);
  EXPECT_EQ(lengths_of(long_score("s + pairs[q, k] + " + rest)).of_score, 3 * (alone + 1));
  EXPECT_EQ(lengths_of(long_score("s + pairs[q, 2 * k] + " + rest)).of_score, 2 * (alone + 1));
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
