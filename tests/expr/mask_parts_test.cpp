// Masks taken apart: conditions on the distance of query and key alone, beside ranges of keys.
#include "compiler/expr/parts/mask_parts.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/print_expr.hpp"
#include "tests/expr/random_expr.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kPartParameters = {
    {"start", ExprType::kI32, {ParamAxis::kNQ}, false},
    {"keep", ExprType::kI32, {ParamAxis::kHeads, ParamDim{ParamAxis::kFixed, 64}}, false},
    {"stride", ExprType::kI32, {ParamAxis::kHeads}, false},
    {"of_key", ExprType::kI32, {ParamAxis::kNK}, false},
};

/// "of the distance | first to last, first to last"; "" where each pair is asked.
std::string mask_parts_of(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kMask, kPartParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  const MaskParts parts = split_mask(result.expr);
  const auto printed = [](const Expr& expr) { return expr.empty() ? "" : print_expr(expr); };
  std::string all = printed(parts.of_distance);
  for (const KeyRange& range : parts.ranges)
    all += (all.empty() ? "" : " | ") + printed(range.first) + " to " + printed(range.last);
  return all;
}

TEST(mask_parts, are_ranges_alone_where_these_say_all) {
  EXPECT_EQ(mask_parts_of("k <= q"), " to q");
  EXPECT_EQ(mask_parts_of("k <= q and (k < 4 or q - k < 8)"), " to min(q, 3) | q - 7 to q");
  EXPECT_EQ(split_mask({}).ranges.size(), 1U);
  EXPECT_TRUE(split_mask({}).of_distance.empty());
}

TEST(mask_parts, are_conditions_on_the_distance) {
  EXPECT_EQ(mask_parts_of("(q - k) % 4 == 0"), "(q - k) % 4 == 0 |  to ");
  EXPECT_EQ(mask_parts_of("k <= q and (q - k) % 4 == 0"), "k <= q and (q - k) % 4 == 0 |  to ");
  EXPECT_EQ(mask_parts_of("keep[q - k] > 0"), "keep[q - k] > 0 |  to ");
  for (const char* text :
       {"(q + n_k - n_q - k) % stride == 0", "h == 1 or (q - k) & 3 == 0", "q != k",
        "not (k <= q and (q - k) % 3 != 1)", "hash(h, q - k) % 8 == 0 and k <= q + n_k - n_q",
        "abs(q - k) < 4 or abs(q - k) == 64 or abs(q - k) == 128",
        "select(q - k < 64, q - k, 64 + (q - k) // 8) % 2 == 0"})
    EXPECT_TRUE(mask_parts_of(text).ends_with(" |  to ")) << text;
}

TEST(mask_parts, are_both) {
  EXPECT_EQ(mask_parts_of("start[q] <= k and (q - k) % 4 == 0"), "(q - k) % 4 == 0 | start[q] to ");
  EXPECT_EQ(mask_parts_of("k <= q and q != k and k < n_k - h"),
            "k <= q and q != k |  to n_k - h - 1");
  EXPECT_EQ(mask_parts_of("(k < 4 or q - k < 64) and (q - k) % 2 == 0 and k <= q"),
            "(q - k) % 2 == 0 and k <= q |  to 3 | q - 63 to ");
}

TEST(mask_parts, are_none_where_a_condition_is_neither) {
  for (const char* text :
       {"k % 4 == 0", "k <= q and k % 4 == 0", "(q - k) % 4 == 0 and of_key[k] > 0",
        "(q - k) % 4 == 0 or k < 4", "q % 4 == k % 4", "(q + k) % 4 == 0", "hash(q, k) % 4 == 0",
        "(q - k) % 4 == 0 and (k == 1 or k == 5 or k == 9)", "(q - k) * of_key[k] % 4 == 0"})
    EXPECT_EQ(mask_parts_of(text), "") << text;
}

/// Of masks that nobody wrote: the parts say what the mask says, and a condition on the distance
/// the same for pairs that are as far apart, before the first token too.
TEST(mask_parts, of_any_mask_say_what_it_says) {
  test::Random random(29);
  const test::ProblemSize size;
  int found = 0;
  for (int n = 0; n < test::draws(40000); ++n) {
    const test::ParameterSet set = test::random_parameters(random, size, false);
    const std::string text = test::RandomExpr(random, Site::kMask, set.symbols).text(3);
    // Bounds of the largest integers may wrap.
    if (text.find("e30") != text.npos || text.find("214748") != text.npos) continue;
    const ParsedExpr result =
        parse_expr("(" + text + ") and (q - k) % 3 != 1", Site::kMask, set.symbols);
    if (!result.ok()) continue;
    const MaskParts parts = split_mask(result.expr);
    if (parts.of_distance.empty()) continue;
    ++found;
    Bindings bindings;
    bindings.parameters = set.views;
    bindings.set(Variable::kNQ, size.n_q), bindings.set(Variable::kNK, size.n_k);
    bindings.set(Variable::kNH, size.heads), bindings.set(Variable::kH, random.below(size.heads));
    const int q = random.below(size.n_q), k = random.below(size.n_k);
    const auto value_at = [&](const Expr& expr, int of_q, int of_k) {
      bindings.set(Variable::kQ, of_q), bindings.set(Variable::kK, of_k);
      return evaluate(expr, bindings);
    };
    const bool counts = value_at(parts.of_distance, q, k).boolean;
    for (const int away : {-15, 1, 15})
      ASSERT_EQ(value_at(parts.of_distance, q + away, k + away).boolean, counts) << text;
    bool is_inside = false;
    for (const KeyRange& range : parts.ranges)
      is_inside |= (range.first.empty() || value_at(range.first, q, k).i32 <= k) &&
                   (range.last.empty() || k <= value_at(range.last, q, k).i32);
    ASSERT_EQ(counts && is_inside, value_at(result.expr, q, k).boolean) << text;
  }
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace lacuna
