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

/// "distance(q != k) or key(k < 4)"
std::string terms_text(const MaskParts& parts, std::size_t place) {
  const MaskTerm& term = parts.terms[place];
  const auto operand = [&](int of) { return terms_text(parts, static_cast<std::size_t>(of)); };
  if (term.op == ExprOp::kNot) return "not " + operand(term.left);
  if (term.op == ExprOp::kAnd || term.op == ExprOp::kOr)
    return "(" + operand(term.left) + (term.op == ExprOp::kAnd ? " and " : " or ") +
           operand(term.right) + ")";
  static constexpr const char* kNames[kMaskSources] = {"distance", "key", "query"};
  return std::string(kNames[static_cast<std::size_t>(term.source)]) + "(" +
         print_expr(parts.of(term.source)[static_cast<std::size_t>(term.left)]) + ")";
}

/// "conditions | first to last | first to last"; "" where each pair is asked.
std::string mask_parts_of(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kMask, kPartParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  const MaskParts parts = split_mask(result.expr);
  const auto printed = [](const Expr& expr) { return expr.empty() ? "" : print_expr(expr); };
  std::string all = parts.terms.empty() ? "" : terms_text(parts, parts.terms.size() - 1);
  for (const KeyRange& range : parts.ranges)
    all += (all.empty() ? "" : " | ") + printed(range.first) + " to " + printed(range.last);
  return all;
}

TEST(mask_parts, are_ranges_alone_where_these_say_all) {
  EXPECT_EQ(mask_parts_of("k <= q"), " to q");
  EXPECT_EQ(mask_parts_of("k <= q and (k < 4 or q - k < 8)"), " to min(q, 3) | q - 7 to q");
  EXPECT_EQ(split_mask({}).ranges.size(), 1U);
  EXPECT_TRUE(split_mask({}).terms.empty());
}

TEST(mask_parts, are_conditions_on_the_distance) {
  EXPECT_EQ(mask_parts_of("(q - k) % 4 == 0"), "distance((q - k) % 4 == 0) |  to ");
  EXPECT_EQ(mask_parts_of("k <= q and (q - k) % 4 == 0"),
            "distance(k <= q and (q - k) % 4 == 0) |  to ");
  EXPECT_EQ(mask_parts_of("keep[q - k] > 0"), "distance(keep[q - k] > 0) |  to ");
  for (const char* text :
       {"(q + n_k - n_q - k) % stride == 0", "h == 1 or (q - k) & 3 == 0", "q != k",
        "not (k <= q and (q - k) % 3 != 1)", "hash(h, q - k) % 8 == 0 and k <= q + n_k - n_q",
        "abs(q - k) < 4 or abs(q - k) == 64 or abs(q - k) == 128",
        "select(q - k < 64, q - k, 64 + (q - k) // 8) % 2 == 0"}) {
    const MaskParts parts = split_mask(parse_expr(text, Site::kMask, kPartParameters).expr);
    EXPECT_TRUE(parts.is_of_distance()) << text;
  }
}

TEST(mask_parts, are_conditions_beside_ranges) {
  EXPECT_EQ(mask_parts_of("start[q] <= k and (q - k) % 4 == 0"),
            "distance((q - k) % 4 == 0) | start[q] to ");
  EXPECT_EQ(mask_parts_of("k <= q and q != k and k < n_k - h"),
            "distance(k <= q and q != k) |  to n_k - h - 1");
  EXPECT_EQ(mask_parts_of("(k < 4 or q - k < 64) and (q - k) % 2 == 0 and k <= q"),
            "distance((q - k) % 2 == 0 and k <= q) |  to 3 | q - 63 to ");
  EXPECT_EQ(mask_parts_of("k <= q and k % 4 == 0"), "key(k % 4 == 0) |  to q");
  EXPECT_EQ(mask_parts_of("k <= q and (q - k < 64 or k % 64 == 0)"),
            "(distance(q - k < 64) or key(k % 64 == 0)) |  to q");
  EXPECT_FALSE(split_mask(parse_expr("k < 4 and q != k", Site::kMask, {}).expr).is_of_distance());
}

TEST(mask_parts, are_conditions_of_each_source_joined) {
  EXPECT_EQ(mask_parts_of("k % 4 == 0"), "key(k % 4 == 0) |  to ");
  EXPECT_EQ(mask_parts_of("(q - k) % 4 == 0 and of_key[k] > 0"),
            "(distance((q - k) % 4 == 0) and key(of_key[k] > 0)) |  to ");
  EXPECT_EQ(mask_parts_of("abs(q - k) < 9 or k < 2 or q % 5 == 0 or k == 7"),
            "((distance(abs(q - k) < 9) or key(k < 2 or k == 7)) or query(q % 5 == 0)) |  to ");
  EXPECT_EQ(mask_parts_of("(q != k or of_key[k] == 1) and not (q - k > 5 and of_key[k] == 2)"),
            "((distance(q != k) or key(of_key[k] == 1)) and not (distance(q - k > 5) and "
            "key(of_key[k] == 2))) |  to ");
}

TEST(mask_parts, are_none_where_a_condition_is_of_pairs_or_too_much) {
  for (const char* text :
       {"q % 4 == k % 4", "(q + k) % 4 == 0", "hash(q, k) % 4 == 0", "k <= q and q * k % 3 == 0",
        "(q - k) * of_key[k] % 4 == 0", "of_key[k] == start[q] and (q - k) % 4 == 0",
        "(q != k or of_key[k] == 1) and (q - k != 2 or of_key[k] == 2) and "
        "(q - k != 3 or of_key[k] == 3)"})
    EXPECT_EQ(mask_parts_of(text), "") << text;
}

/// What the terms say of a pair, and that conditions say the same of all pairs that share them.
bool say_terms(const MaskParts& parts, std::size_t place, Bindings& bindings, int q, int k) {
  const MaskTerm& term = parts.terms[place];
  const auto operand = [&](int of) {
    return say_terms(parts, static_cast<std::size_t>(of), bindings, q, k);
  };
  if (term.op == ExprOp::kNot) return !operand(term.left);
  if (term.op == ExprOp::kAnd) return operand(term.left) & operand(term.right);
  if (term.op == ExprOp::kOr) return operand(term.left) | operand(term.right);
  const Expr& condition = parts.of(term.source)[static_cast<std::size_t>(term.left)];
  const auto value_at = [&](int of_q, int of_k) {
    bindings.set(Variable::kQ, of_q), bindings.set(Variable::kK, of_k);
    return evaluate(condition, bindings).boolean;
  };
  const bool counts = value_at(q, k);
  for (const int away : {-15, 1, 15}) {
    const bool moves_q = term.source != MaskSource::kQuery;
    const bool moves_k = term.source != MaskSource::kKey;
    EXPECT_EQ(value_at(q + (moves_q ? away : 0), k + (moves_k ? away : 0)), counts);
  }
  return counts;
}

/// Of masks that nobody wrote.
TEST(mask_parts, of_any_mask_say_what_it_says) {
  test::Random random(29);
  const test::ProblemSize size;
  int found[kMaskSources] = {};
  const int draws = test::draws(40000);
  for (int n = 0; n < draws; ++n) {
    const test::ParameterSet set = test::random_parameters(random, size, false);
    const auto draw = [&] { return test::RandomExpr(random, Site::kMask, set.symbols).text(2); };
    const char* joins = random.chance(50) ? " and " : " or ";
    const std::string text = "((" + draw() + ")" + joins + "(" + draw() + ")) and (q - k) % 3 != 1";
    // Bounds of the largest integers may wrap.
    if (text.find("e30") != text.npos || text.find("214748") != text.npos) continue;
    const ParsedExpr result = parse_expr(text, Site::kMask, set.symbols);
    if (!result.ok()) continue;
    const MaskParts parts = split_mask(result.expr);
    if (parts.terms.empty()) continue;
    for (std::size_t s = 0; s < kMaskSources; ++s) found[s] += parts.conditions[s].empty() ? 0 : 1;
    Bindings bindings;
    bindings.parameters = set.views;
    bindings.set(Variable::kNQ, size.n_q), bindings.set(Variable::kNK, size.n_k);
    bindings.set(Variable::kNH, size.heads), bindings.set(Variable::kH, random.below(size.heads));
    const int q = random.below(size.n_q), k = random.below(size.n_k);
    SCOPED_TRACE(text);
    const bool counts = say_terms(parts, parts.terms.size() - 1, bindings, q, k);
    ASSERT_FALSE(HasFailure());
    bindings.set(Variable::kQ, q), bindings.set(Variable::kK, k);
    bool is_inside = false;
    for (const KeyRange& range : parts.ranges)
      is_inside |= (range.first.empty() || evaluate(range.first, bindings).i32 <= k) &&
                   (range.last.empty() || k <= evaluate(range.last, bindings).i32);
    ASSERT_EQ(counts && is_inside, evaluate(result.expr, bindings).boolean);
  }
  for (const int count : found) EXPECT_GT(count, draws / 400);
}

}  // namespace
}  // namespace lacuna
