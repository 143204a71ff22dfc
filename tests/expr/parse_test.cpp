#include "compiler/expr/text/parse.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/expr_tables.hpp"
#include "tests/expr/random_expr.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

using enum ParamAxis;

const std::vector<ParamSymbol> kParsedParameters = {
    {"tau", ExprType::kF32, {}, false},
    {"lambda", ExprType::kF32, {kHeads}, false},
    {"threshold", ExprType::kF32, {kHeads, kQTiles}, false},
    {"start", ExprType::kI32, {kNQ}, true},
    {"per_head_start", ExprType::kI32, {kHeads, kNQ}, true},
};

std::string canonical(std::string_view text, Site site) {
  const ParsedExpr parsed = parse_expr(text, site, kParsedParameters);
  return parsed.ok() ? print_expr(parsed.expr) : "error: " + parsed.errors[0].message;
}

struct Printed {
  const char *text, *canonical;
  Site site = Site::kMask;
};

TEST(parse, follows_python_precedence) {
  for (const Printed& row : std::vector<Printed>{
           {"k<=q+n_k-n_q", "k <= q + n_k - n_q"},
           {"q - (k - n_q) > 0", "q - (k - n_q) > 0"},
           {"(q - k) - n_q > 0", "q - k - n_q > 0"},
           {"q + k * n_q > 0", "q + k * n_q > 0"},
           {"(q + k) * n_q > 0", "(q + k) * n_q > 0"},
           {"-(q + k) * n_q > 0", "-(q + k) * n_q > 0"},
           {"-q * k > 0", "-q * k > 0"},
           {"not q < k or q == k and k > 3", "q >= k or q == k and k > 3"},
           {"not (q < k or q == k)", "not (q < k or q == k)"},
           {"q < 3 or k < 3 and h == 0", "q < 3 or k < 3 and h == 0"},
           {"(q < 3 or k < 3) and h == 0", "(q < 3 or k < 3) and h == 0"},
           {"q // 64 == k // 64", "q // 64 == k // 64"},
           {"q % (k // 2) == 0", "q % (k // 2) == 0"},
           {"clamp(q, 1, k) == 2", "min(max(q, 1), k) == 2"},
           {"select(h == 0, k < 3, k < 9)", "h == 0 and k < 3 or h != 0 and k < 9"},
           {"select(h == 0, k < 3, true)", "h == 0 and k < 3 or h != 0"},
           {"(q < 3) == (k < 3)", "q < 3 and k < 3 or not (q < 3 or k < 3)"},
           {"(q < 3) != (k < 3)", "(q < 3 or k < 3) and not (q < 3 and k < 3)"},
           {"true == (k < 3)", "k < 3"},
           {"k >= start[q] and k >= per_head_start[q]", "k >= start[q] and k >= per_head_start[q]"},
           {"k >= per_head_start[h, q + 1]", "k >= per_head_start[q + 1]"},
           {"k >= per_head_start[h - 1, q]", "k >= per_head_start[h - 1, q]"},
       }) {
    EXPECT_EQ(canonical(row.text, row.site), row.canonical) << row.text;
  }
}

TEST(parse, promotes_integers_only_where_needed) {
  for (const Printed& row : std::vector<Printed>{
           {"q * tau < k", "q * tau < k"},
           {"q / 2 < k", "q / 2.0 < k"},
           {"q < k / n_k", "q < k / n_k"},
           {"select(true, q, 0.5) < k", "q < k * 1.0"},
           {"q", "q", Site::kScore},
           {"tanh(s / 30) * 30", "tanh(s / 30.0) * 30.0", Site::kScore},
           {"s - lambda * abs(q - k)", "s - lambda * abs(q - k)", Site::kScore},
       }) {
    EXPECT_EQ(canonical(row.text, row.site), row.canonical) << row.text;
  }
  const Expr sum = parse_expr("q + tau > 0", Site::kMask, kParsedParameters).expr;
  EXPECT_EQ(sum.root().type, ExprType::kBool);
  const ExprNode& add = sum.nodes[static_cast<std::size_t>(sum.root().children[0])];
  EXPECT_EQ(add.type, ExprType::kF32);
  EXPECT_EQ(sum.nodes[static_cast<std::size_t>(add.children[0])].op, ExprOp::kToF32);
}

TEST(parse, folds_what_holds_for_every_input) {
  for (const Printed& row : std::vector<Printed>{
           {"q + 0 < 2 * 3 + k * 1", "q < 6 + k"},
           {"q + 3 - 5 < k", "q - 2 < k"},
           {"q < k and true or false", "q < k"},
           {"q < q or k >= k and h == 0", "h == 0"},
           {"select(1 < 2, q, k) == 0", "q == 0"},
           {"not not q < k", "q < k"},
           {"not tau < 1", "not tau < 1.0"},
           {"q * 0 == 0", "true"},
           {"q * tau * 0 == 0", "q * tau * 0.0 == 0.0"},
           {"tau + 0.0 < 1", "tau + 0.0 < 1.0"},
           {"tau - 0.0 < 1", "tau < 1.0"},
           {"0.0 / 0 == tau", "0.0 / 0.0 == tau"},
           {"-7 // 2 == q and -7 % 2 == k", "-4 == q and 1 == k"},
           {"7 // 0 == q and 7 % 0 == k", "0 == q and 7 == k"},
           {"-2147483648 // -1 == q", "-2147483648 == q"},
           {"2147483647 + 1 == q", "-2147483648 == q"},
           {"bit_length(-8) == q", "4 == q"},
           {"min(q, 2147483647) == 0 and max(k, k) == 0", "q == 0 and k == 0"},
           {"sqrt(2) < tau", "1.4142135 < tau"},
           {"s * 1", "s", Site::kScore},
           {"-(-s)", "s", Site::kScore},
           {"(n_q + 128 - 1) // 128", "(n_q + 127) // 128", Site::kLaunch},
       }) {
    EXPECT_EQ(canonical(row.text, row.site), row.canonical) << row.text;
  }
}

TEST(parse, tells_which_names_an_expression_reads) {
  const Expr mask = parse_expr("k >= start[q] and q < n_k", Site::kMask, kParsedParameters).expr;
  EXPECT_TRUE(uses(mask, Variable::kNK));
  EXPECT_FALSE(uses(mask, Variable::kH));
  EXPECT_TRUE(uses_parameter(mask, 3));
  EXPECT_FALSE(uses_parameter(mask, 0));
  const Expr gate = parse_expr("gap < lambda", Site::kGate, kParsedParameters).expr;
  EXPECT_TRUE(uses(gate, Variable::kH)) << "the index of [heads] is read";
}

TEST(parse, equality_is_of_meaning_not_of_text) {
  const auto parse = [](const char* text) {
    return parse_expr(text, Site::kMask, kParsedParameters).expr;
  };
  EXPECT_EQ(parse("q<k"), parse("( q  <  k )"));
  EXPECT_EQ(parse("q < 2 + 3"), parse("q < 5"));
  EXPECT_FALSE(parse("q < k") == parse("k > q"));
  EXPECT_FALSE(parse("tau < 0.0") == parse("tau < -0.0"));
  EXPECT_FALSE(parse("q < k") == Expr{});
  EXPECT_EQ(Expr{}, Expr{});
}

TEST(parse, nodes_carry_the_bytes_they_came_from) {
  const std::string text = "k <= q and  (q - k) < 64";
  const Expr mask = parse_expr(text, Site::kMask, {}).expr;
  EXPECT_EQ(mask.text, text);
  const ExprNode& less = mask.nodes[static_cast<std::size_t>(mask.root().children[1])];
  EXPECT_EQ(text.substr(less.begin, less.end - less.begin), "(q - k) < 64");
  const ExprNode& difference = mask.nodes[static_cast<std::size_t>(less.children[0])];
  EXPECT_EQ(text.substr(difference.begin, difference.end - difference.begin), "q - k");
}

TEST(parse, round_trips_through_text_at_every_site) {
  test::Random random(1);
  for (const SiteInfo& site : all_sites()) {
    if (!site.yields) continue;  // where any type is right, nothing says that the root is promoted
    const auto set = test::random_parameters(random, {}, false);
    // Random parameters are read by query tokens and heads.
    const bool reads_queries =
        site.site != Site::kReference && site.site != Site::kLaunch && site.site != Site::kIndexK;
    const auto& parameters = reads_queries ? set.symbols : std::vector<ParamSymbol>{};
    for (int n = 0; n < test::draws(2000); ++n) {
      const std::string text = test::RandomExpr(random, site.site, parameters).text(1 + n % 6);
      const ParsedExpr parsed = parse_expr(text, site.site, parameters);
      ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.errors[0].message;
      ASSERT_EQ(fold(parsed.expr), parsed.expr) << text;
      const std::string printed = print_expr(parsed.expr);
      const ParsedExpr again = parse_expr(printed, site.site, parameters);
      ASSERT_TRUE(again.ok()) << printed << ": " << again.errors[0].message;
      ASSERT_EQ(again.expr, parsed.expr) << text << "\n"
                                         << printed << "\n"
                                         << print_expr(again.expr);
    }
  }
}

TEST(tables, every_name_is_found_once_and_reserved) {
  for (const VariableInfo& row : all_variables()) {
    EXPECT_EQ(find_variable(row.name), &info(row.variable));
    EXPECT_EQ(find_function(row.name), nullptr) << row.name;
    EXPECT_TRUE(is_reserved(row.name));
  }
  for (const char* word : {"and", "or", "not", "true", "false", "inf", "clamp", "exp"}) {
    EXPECT_TRUE(is_reserved(word)) << word;
  }
  EXPECT_FALSE(is_reserved("tau"));
}

TEST(tables, the_reference_names_every_site_variable_and_operator) {
  const std::string text = expr_reference();
  for (const SiteInfo& row : all_sites()) {
    const std::size_t at = text.find("| `" + std::string(row.name) + "` |");
    ASSERT_NE(at, std::string::npos) << row.name;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const std::string reads = line.substr(line.rfind('|', line.size() - 2));
    for (const VariableInfo& variable : all_variables())
      EXPECT_EQ(reads.find("`" + std::string(variable.name) + "`") != std::string::npos,
                offers(row.site, variable.variable))
          << line << " " << variable.name;
  }
  for (const VariableInfo& row : all_variables()) {
    EXPECT_NE(text.find("| `" + std::string(row.name) + "` |"), std::string::npos) << row.name;
  }
  for (const OperatorInfo& row : all_operators()) {
    if (row.notation == Notation::kNone) continue;
    EXPECT_NE(text.find("| `" + std::string(row.spelling) + "` |"), std::string::npos);
  }
}

}  // namespace
}  // namespace lacuna
