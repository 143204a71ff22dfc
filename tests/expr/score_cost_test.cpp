// What a score formula leaves for each score.
#include "compiler/expr/parts/score_cost.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lacuna
