// Parts of a score formula that depend on the distance of query and key alone.
#include "compiler/expr/parts/distance_parts.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "compiler/expr/parts/score_parts.hpp"
#include "compiler/expr/print_expr.hpp"
#include "tests/expr/random_expr.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kDistanceParameters = {
    {"bias", ExprType::kF32, {ParamAxis::kHeads, ParamDim{ParamAxis::kFixed, 32}}, false},
    {"table", ExprType::kF32, {ParamAxis::kNQ, ParamDim{ParamAxis::kFixed, 32}}, false},
    {"level", ExprType::kF32, {ParamAxis::kNK}, false},
    {"slope", ExprType::kF32, {ParamAxis::kHeads}, false},
    {"width", ExprType::kI32, {ParamAxis::kHeads}, false},
    {"place", ExprType::kI32, {ParamAxis::kNK}, false},
};

/// "of the distance | rest" of s + text; "" where there is no such part.
std::string distance_parts_of(const std::string& text) {
  const ParsedExpr result = parse_expr("s + " + text, Site::kScore, kDistanceParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  const auto parts = split_distance(split_score(result.expr).rest);
  return parts ? print_expr(parts->of_distance) + " | " + print_expr(parts->rest) : "";
}

/// Is all of it such a part?
bool is_of_distance(const std::string& text) { return distance_parts_of(text).ends_with(" | s"); }

TEST(distance_parts, are_what_reads_q_less_k) {
  EXPECT_EQ(distance_parts_of("bias[abs(q - k)]"), "bias[abs(q - k)] | s");
  EXPECT_TRUE(is_of_distance("abs(q - k)"));
  EXPECT_TRUE(is_of_distance("slope * exp2(-0.5 * abs(k - q))"));
  EXPECT_TRUE(is_of_distance("bias[select(k > q, 16, 0) + min(abs(q - k), 15)]"));
  EXPECT_TRUE(is_of_distance("bias[bit_length((q - k) & 255)]"));
  EXPECT_TRUE(is_of_distance("hash(h, q - k) * 0.5"));
  EXPECT_TRUE(is_of_distance("bias[(q - k) // width] - tanh(slope * (q - k) / 4.0)"));
}

TEST(distance_parts, look_through_sums_shifts_and_choices) {
  EXPECT_TRUE(is_of_distance("bias[abs(q + n_k - n_q - k)]"));
  EXPECT_TRUE(is_of_distance("bias[abs(2 * q + 7 - k - k)]"));
  EXPECT_TRUE(is_of_distance("bias[abs(max(q, k) - min(k, q))]"));
  EXPECT_TRUE(is_of_distance("bias[abs(q - select(k + 3 > q, k, q)) % 32]"));
  EXPECT_TRUE(is_of_distance("bias[abs(-k - -(q + n_k - n_q))]"));
  EXPECT_TRUE(is_of_distance("bias[select(q == k or k < q - 3, 0, abs(q - k))]"));
}

TEST(distance_parts, are_not_what_reads_tokens_otherwise) {
  for (const char* text :
       {"bias[abs(q + k)]", "bias[abs(q - 2 * k)]", "bias[(q // 2 - k // 2) % 32]", "level[k // 2]",
        "exp2(slope * q) * exp2(slope * k)", "bias[abs(q - place[k])]", "table[q, abs(q - k)]",
        "bias[select(k > 5, abs(q - k), 0)]", "bias[q % 8 - k % 8]", "bias[min(q, 5) - min(k, 5)]",
        "bias[hash(q, k) & 31]", "exp2(0.5 * q - 0.5 * k)", "bias[(q & 15) ^ (k & 15)]",
        "bias[select(q > 2 * k, 0, 1)]", "abs(1.0 * q - 1.0 * k)"})
    EXPECT_EQ(distance_parts_of(text), "") << text;
}

/// Numbers that wrap keep their difference, but not their order.
TEST(distance_parts, take_integers_that_wrap_for_unordered) {
  EXPECT_TRUE(is_of_distance("bias[abs(q * 1000000 - k * 1000000) >> 20]"));
  EXPECT_EQ(distance_parts_of("bias[select(q * 1000000 > k * 1000000, 0, 1)]"), "");
  EXPECT_EQ(distance_parts_of("bias[max(q * 1000000, k * 1000000) - q * 1000000]"), "");
  EXPECT_TRUE(is_of_distance("bias[select(q * 1000000 == k * 1000000, 0, 1)]"));
  EXPECT_EQ(distance_parts_of("bias[select(q - 2147483647 > k - 2147483647, 0, 1)]"), "");
}

TEST(distance_parts, leave_the_others_behind) {
  EXPECT_EQ(distance_parts_of("level[k] + bias[abs(q - k)]"), "bias[abs(q - k)] | level[k] + s");
  EXPECT_EQ(distance_parts_of("level[k] * bias[abs(q - k)]"), "bias[abs(q - k)] | level[k] * s");
  // A product may be rounded with the sum around it.
  EXPECT_EQ(distance_parts_of("level[k] - slope * tanh(0.5 * (q - k))"),
            "tanh(0.5 * (q - k)) | level[k] - slope * s");
  // The one that takes most.
  EXPECT_EQ(distance_parts_of("abs(q - k) * level[k] + bias[abs(q - k)]"),
            "bias[abs(q - k)] | abs(q - k) * level[k] + s");
}

TEST(distance_parts, are_worth_handing_on) {
  EXPECT_EQ(distance_parts_of("select(k > q, 1.0, 0.0)"), "");
  EXPECT_EQ(distance_parts_of("slope * (q - k)"), "");  // affine
}

TEST(distance_parts, are_tables_by_distance) {
  EXPECT_TRUE(is_of_distance("bias[q - k]"));
  EXPECT_TRUE(is_of_distance("level[n_k - 1 - q + k]"));
  EXPECT_EQ(distance_parts_of("level[n_k - 1 - q + 2 * k]"), "");
}

/// What they mean, on formulas that nobody wrote: the same bits for a query and a key that are as
/// far apart, before the first token too, and put together the bits of the formula.
TEST(distance_parts, of_any_formula_are_the_same_along_a_diagonal) {
  test::Random random(71);
  int found = 0;
  const test::ProblemSize size;
  for (int n = 0; n < test::draws(40000); ++n) {
    const test::ParameterSet set = test::random_parameters(random, size, false);
    std::string text = test::RandomExpr(random, Site::kScore, set.symbols).text(3);
    for (std::size_t at = 0; (at = text.find("s", at)) != std::string::npos; ++at) {
      const auto is_part = [&](std::size_t x) {
        return x < text.size() && (std::isalnum(text[x]) != 0 || text[x] == '_');
      };
      if (!is_part(at + 1) && (at == 0 || !is_part(at - 1))) text.replace(at, 1, "(k - q)");
    }
    const ParsedExpr result = parse_expr("1.0 * (" + text + ")", Site::kScore, set.symbols);
    if (!result.ok()) continue;
    const auto parts = split_distance(result.expr);
    if (!parts) continue;
    ++found;
    Bindings bindings;
    bindings.parameters = set.views;
    bindings.set(Variable::kNQ, size.n_q), bindings.set(Variable::kNK, size.n_k);
    bindings.set(Variable::kNH, size.heads), bindings.set(Variable::kH, random.below(size.heads));
    const int q = random.below(size.n_q), k = random.below(size.n_k);
    const auto value_at = [&](const Expr& expr, int away) {
      bindings.set(Variable::kQ, q + away), bindings.set(Variable::kK, k + away);
      return std::bit_cast<std::uint32_t>(evaluate(expr, bindings).f32);
    };
    const std::uint32_t expected = value_at(parts->of_distance, 0);
    for (const int away : {-15, 1, 15})
      ASSERT_EQ(value_at(parts->of_distance, away), expected) << text << " " << away;
    const std::uint32_t all = value_at(result.expr, 0);
    bindings.set(Variable::kS, std::bit_cast<float>(expected));
    ASSERT_EQ(value_at(parts->rest, 0), all) << text;
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace lacuna
