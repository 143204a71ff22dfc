// A score formula taken apart: what is of the query alone, what grows evenly with k, and the rest.
#include "compiler/expr/parts/score_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kScoreParameters = {
    {"cap", ExprType::kF32, {}, false},
    {"slope", ExprType::kF32, {ParamAxis::kHeads}, false},
    {"bias", ExprType::kF32, {ParamAxis::kNK}, false},
    {"stride", ExprType::kI32, {}, false},
};

Expr parsed_score(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kScore, kScoreParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  return result.expr;
}

/// "factor | core | offset | slope | rest", as text.
std::string score_parts_of(const std::string& text) {
  const ScoreParts parts = split_score(parsed_score(text));
  std::string all;
  for (const Expr* part : {&parts.factor, &parts.core, &parts.offset, &parts.slope, &parts.rest})
    all += (part == &parts.factor ? "" : " | ") + (part->empty() ? "" : print_expr(*part));
  return all;
}

TEST(score_parts, of_s_alone_are_none) { EXPECT_EQ(score_parts_of("s"), " |  |  |  | "); }

TEST(score_parts, take_factors_of_the_query_out) {
  EXPECT_EQ(score_parts_of("2.0 * s"), "2.0 |  |  |  | ");
  EXPECT_EQ(score_parts_of("-(s * slope) * 3.0"), "-3.0 * slope |  |  |  | ");
  EXPECT_EQ(score_parts_of("s / cap"), "1.0 / cap |  |  |  | ");
  EXPECT_EQ(score_parts_of("s * q"), "q |  |  |  | ");
}

TEST(score_parts, know_what_grows_evenly_along_a_row) {
  EXPECT_EQ(score_parts_of("s - slope * (q + n_k - n_q - k)"),
            " |  | -(slope * (q + n_k - n_q - k)) | -(-1.0 * slope) | ");
  EXPECT_EQ(score_parts_of("s + slope * k * 2 + q"), " |  | slope * k * 2.0 + q | slope * 2.0 | ");
}

TEST(score_parts, leave_everything_else_to_each_score) {
  EXPECT_EQ(score_parts_of("cap * tanh(s / cap)"), "cap | tanh(s * (1.0 / cap)) |  |  | ");
  EXPECT_EQ(score_parts_of("s + bias[k - q] - abs(q - k)"), " |  |  |  | bias[k - q] - abs(q - k)");
  EXPECT_EQ(score_parts_of("s * k"), " | s * k |  |  | ");
  EXPECT_EQ(score_parts_of("s + s * s"), " | s + s * s |  |  | ");
  EXPECT_EQ(score_parts_of("select(k < 4, s, s - 1.0)"), " | select(k < 4, s, s - 1.0) |  |  | ");
}

TEST(score_parts, have_a_rest_inside_where_the_core_reads_s_in_one_sum) {
  const auto inside = [](const std::string& text) {
    return (split_score(parsed_score(text)).rest_is_inside ? "inside: " : "") +
           score_parts_of(text);
  };
  EXPECT_EQ(inside("cap * tanh((s + bias[k]) / cap)"),
            "inside: cap | tanh(s * (1.0 / cap)) |  |  | bias[k]");
  EXPECT_EQ(inside("max(s - bias[k] + cap, 0.0) + k"),
            "inside:  | max(s, 0.0) | k | 1.0 | -bias[k] + cap");
  EXPECT_EQ(inside("(s + bias[k]) / (1.0 + exp(-(s + bias[k])))"),
            "inside:  | s / (1.0 + exp(-s)) |  |  | bias[k]");
  EXPECT_EQ(inside("max(s + slope * (k - q), 0.0)"),
            "inside:  | max(s, 0.0) |  |  | slope * (k - q)");
}

TEST(score_parts, have_none_inside_where_s_is_read_elsewhere_or_scaled) {
  for (const char* text :
       {"max(s + bias[k], s)", "max(2.0 * s + bias[k], 0.0)", "max(s + cap, 0.0)",
        "max(bias[k] - s, 0.0)", "max(s + s + bias[k], 0.0)", "max(s + bias[k], 0.0) + bias[k]"}) {
    const ScoreParts parts = split_score(parsed_score(text));
    EXPECT_FALSE(parts.rest_is_inside) << text;
  }
}

TEST(score_parts, without_s_have_a_core_of_zero) {
  EXPECT_EQ(score_parts_of("q * 1.0"), "0.0 | 0.0 | q |  | ");
}

float value_of_part(const Expr& expr, const Bindings& bindings, float absent) {
  return expr.empty() ? absent : evaluate(expr, bindings).f32;
}

/// What they mean: their sum is the score, and the offset gains the slope.
TEST(score_parts, add_up_to_the_score) {
  const float values[] = {0.5f, -1.25f, 3.0f, 0.25f};
  std::vector<ParamView> views;
  for (int n = 0; n < 3; ++n) views.push_back({.value = {.f32 = 0.5f + static_cast<float>(n)}});
  views.push_back({.value = {.i32 = 3}});
  views[2].data = values;
  views[2].extent[0] = 4, views[2].stride[0] = 1;
  for (const char* text :
       {"s", "-(s * slope) / cap + 2.0", "s - slope * (q + n_k - n_q - k)",
        "cap * tanh(s / cap) - k / 7.0", "s * q + bias[k] - 2 * (k - stride * (q - 3 * k))",
        "s / (1.0 + k) + slope * k", "3.0 - -(-s)", "select(k % 2 == 0, s, -s) * 4.0 + max(k, q)",
        "k * slope", "cap * tanh((bias[k] + s - slope) / cap) - k", "max(s - abs(q - k), -2.0)"}) {
    const Expr score = parsed_score(text);
    const ScoreParts parts = split_score(score);
    for (int at = 0; at < 60; ++at) {
      Bindings bindings;
      bindings.parameters = views;
      bindings.set(Variable::kS, 0.37f * static_cast<float>(at % 11) - 2.0f);
      bindings.set(Variable::kQ, at % 7), bindings.set(Variable::kK, at % 13);
      bindings.set(Variable::kNQ, 9), bindings.set(Variable::kNK, 20);
      const float offset = value_of_part(parts.offset, bindings, 0);
      const float rest = value_of_part(parts.rest, bindings, 0);
      const float s = bindings.variables[static_cast<std::size_t>(Variable::kS)].f32;
      Bindings of_core = bindings;
      of_core.set(Variable::kS, s + (parts.rest_is_inside ? rest : 0));
      const float core = value_of_part(parts.core, of_core, s);
      const float sum = value_of_part(parts.factor, bindings, 1) * core + offset +
                        (parts.rest_is_inside ? 0 : rest);
      EXPECT_NEAR(sum, evaluate(score, bindings).f32, 1e-5f * std::max(1.0f, std::abs(sum)))
          << text;
      const float slope = value_of_part(parts.slope, bindings, 0);
      bindings.set(Variable::kK, at % 13 + 1);
      EXPECT_NEAR(value_of_part(parts.offset, bindings, 0) - offset, slope, 1e-4f) << text;
    }
  }
}

TEST(score_parts, take_integers_that_may_wrap_for_uneven) {
  EXPECT_EQ(score_parts_of("s + k * stride * stride"), " |  |  |  | k * stride * stride");
}

}  // namespace
}  // namespace lacuna
