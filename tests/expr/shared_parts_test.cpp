// Parts of a score formula that depend on the distance of query and key alone, or on the key alone.
#include "compiler/expr/parts/shared_parts.hpp"

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

/// "of the distance | of the key | rest" of s + text, without what there is not; "" where there is
/// no such part.
std::string shared_parts_of(const std::string& text) {
  const ParsedExpr result = parse_expr("s + " + text, Site::kScore, kDistanceParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  const auto parts = shared_parts(split_score(result.expr).rest);
  if (!parts) return "";
  std::string all;
  for (const Expr* part : {&parts->of_distance, &parts->of_key})
    if (!part->empty()) all += print_expr(*part) + " | ";
  return all + print_expr(parts->rest);
}

/// Is all of it such a part?
bool is_of_distance(const std::string& text) { return shared_parts_of(text).ends_with(" | s"); }

TEST(shared_parts, are_what_reads_q_less_k) {
  EXPECT_EQ(shared_parts_of("bias[abs(q - k)]"), "bias[abs(q - k)] | s");
  EXPECT_TRUE(is_of_distance("abs(q - k)"));
  EXPECT_TRUE(is_of_distance("slope * exp2(-0.5 * abs(k - q))"));
  EXPECT_TRUE(is_of_distance("bias[select(k > q, 16, 0) + min(abs(q - k), 15)]"));
  EXPECT_TRUE(is_of_distance("bias[bit_length((q - k) & 255)]"));
  EXPECT_TRUE(is_of_distance("hash(h, q - k) * 0.5"));
  EXPECT_TRUE(is_of_distance("bias[(q - k) // width] - tanh(slope * (q - k) / 4.0)"));
}

TEST(shared_parts, look_through_sums_shifts_and_choices) {
  EXPECT_TRUE(is_of_distance("bias[abs(q + n_k - n_q - k)]"));
  EXPECT_TRUE(is_of_distance("bias[abs(2 * q + 7 - k - k)]"));
  EXPECT_TRUE(is_of_distance("bias[abs(max(q, k) - min(k, q))]"));
  EXPECT_TRUE(is_of_distance("bias[abs(q - select(k + 3 > q, k, q)) % 32]"));
  EXPECT_TRUE(is_of_distance("bias[abs(-k - -(q + n_k - n_q))]"));
  EXPECT_TRUE(is_of_distance("bias[select(q == k or k < q - 3, 0, abs(q - k))]"));
}

TEST(shared_parts, are_not_what_reads_tokens_otherwise) {
  for (const char* text :
       {"bias[abs(q + k)]", "bias[abs(q - 2 * k)]", "bias[(q // 2 - k // 2) % 32]",
        "bias[abs(q - place[k])]", "table[q, abs(q - k)]", "bias[select(k > 5, abs(q - k), 0)]",
        "bias[q % 8 - k % 8]", "bias[min(q, 5) - min(k, 5)]", "bias[hash(q, k) & 31]",
        "exp2(0.5 * q - 0.5 * k)", "bias[(q & 15) ^ (k & 15)]", "bias[select(q > 2 * k, 0, 1)]",
        "abs(1.0 * q - 1.0 * k)"})
    EXPECT_EQ(shared_parts_of(text), "") << text;
}

TEST(shared_parts, are_what_reads_k_alone) {
  EXPECT_EQ(shared_parts_of("level[k // 2]"), "level[k // 2] | p");
  EXPECT_EQ(shared_parts_of("-level[k] * slope"), "-level[k] * slope | p");
  EXPECT_EQ(shared_parts_of("exp2(slope * q) * exp2(slope * k)"),
            "exp2(slope * k) | exp2(slope * q) * p");
  EXPECT_EQ(shared_parts_of("level[k] * abs(q + k)"), "level[k] | p * abs(q + k)");
}

/// Numbers that wrap keep their difference, but not their order.
TEST(shared_parts, take_integers_that_wrap_for_unordered) {
  EXPECT_TRUE(is_of_distance("bias[abs(q * 1000000 - k * 1000000) >> 20]"));
  EXPECT_EQ(shared_parts_of("bias[select(q * 1000000 > k * 1000000, 0, 1)]"), "");
  EXPECT_EQ(shared_parts_of("bias[max(q * 1000000, k * 1000000) - q * 1000000]"), "");
  EXPECT_TRUE(is_of_distance("bias[select(q * 1000000 == k * 1000000, 0, 1)]"));
  EXPECT_EQ(shared_parts_of("bias[select(q - 2147483647 > k - 2147483647, 0, 1)]"), "");
}

TEST(shared_parts, leave_the_others_behind) {
  EXPECT_EQ(shared_parts_of("level[k] + bias[abs(q - k)]"), "bias[abs(q - k)] | level[k] | p + s");
  EXPECT_EQ(shared_parts_of("level[k] * bias[abs(q - k)]"), "bias[abs(q - k)] | level[k] | p * s");
  // A product may be rounded with the sum around it.
  EXPECT_EQ(shared_parts_of("level[k] - slope * tanh(0.5 * (q - k))"),
            "tanh(0.5 * (q - k)) | level[k] | p - slope * s");
  // The one that takes most.
  EXPECT_EQ(shared_parts_of("abs(q - k) * level[k] + bias[abs(q - k)]"),
            "bias[abs(q - k)] | level[k] | abs(q - k) * p + s");
}

TEST(shared_parts, are_worth_handing_on) {
  EXPECT_EQ(shared_parts_of("select(k > q, 1.0, 0.0)"), "");
  EXPECT_EQ(shared_parts_of("slope * (q - k)"), "");  // affine
}

TEST(shared_parts, are_tables_by_distance) {
  EXPECT_TRUE(is_of_distance("bias[q - k]"));
  EXPECT_TRUE(is_of_distance("level[n_k - 1 - q + k]"));
  EXPECT_EQ(shared_parts_of("level[n_k - 1 - q + 2 * k]"), "");
}

/// What they mean, on formulas that nobody wrote: the same bits for a query and a key that are as
/// far apart, before the first token too, or for any query; and put together the bits of the
/// formula.
TEST(shared_parts, of_any_formula_are_the_same_for_all_that_share_them) {
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
    const auto parts = shared_parts(result.expr);
    if (!parts) continue;
    ++found;
    Bindings bindings;
    bindings.parameters = set.views;
    bindings.set(Variable::kNQ, size.n_q), bindings.set(Variable::kNK, size.n_k);
    bindings.set(Variable::kNH, size.heads), bindings.set(Variable::kH, random.below(size.heads));
    const int q = random.below(size.n_q), k = random.below(size.n_k);
    const auto value_at = [&](const Expr& expr, int of_q, int of_k) {
      bindings.set(Variable::kQ, of_q), bindings.set(Variable::kK, of_k);
      return std::bit_cast<std::uint32_t>(evaluate(expr, bindings).f32);
    };
    const std::uint32_t all = value_at(result.expr, q, k);
    if (const Expr& part = parts->of_distance; !part.empty()) {
      const std::uint32_t expected = value_at(part, q, k);
      for (const int away : {-15, 1, 15})
        ASSERT_EQ(value_at(part, q + away, k + away), expected) << text << " " << away;
      bindings.set(Variable::kS, std::bit_cast<float>(expected));
    }
    if (const Expr& part = parts->of_key; !part.empty()) {
      const std::uint32_t expected = value_at(part, q, k);
      ASSERT_EQ(value_at(part, q + 1, k), expected) << text;
      bindings.set(Variable::kP, std::bit_cast<float>(expected));
    }
    ASSERT_EQ(value_at(parts->rest, q, k), all) << text;
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace lacuna
