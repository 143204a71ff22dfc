// Names of `let` in formulas: the nodes of their definitions, at every site and of every type.
#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"
#include "tests/expr/random_expr.hpp"

namespace lacuna {
namespace {

/// Parsed one behind the other, as a spec defines them.
std::vector<LetSymbol> defined(const std::vector<std::pair<std::string, std::string>>& definitions,
                               std::span<const ParamSymbol> parameters) {
  std::vector<LetSymbol> lets;
  for (const auto& [name, text] : definitions) lets.push_back({name, {}});
  for (std::size_t n = 0; n < lets.size(); ++n)
    lets[n].expr = parse_expr(definitions[n].second, Site::kLet, parameters, {lets, n}).expr;
  return lets;
}

TEST(let, a_name_is_its_definition_at_every_site) {
  test::Random random(7);
  for (const SiteInfo& site : all_sites()) {
    if (site.site == Site::kLaunch || site.site == Site::kLet) continue;
    const bool reads_queries = site.site != Site::kReference && site.site != Site::kIndexK;
    const auto set = test::random_parameters(random, {}, false);
    const auto& parameters = reads_queries ? set.symbols : std::vector<ParamSymbol>{};
    for (int n = 0; n < test::draws(500); ++n) {
      test::RandomExpr texts(random, site.site, parameters);
      const std::string first = texts.text(1 + n % 5), second = texts.text(1 + n % 3);
      const std::vector<LetSymbol> lets =
          defined({{"x", first}, {"again", "x"}, {"y", second}}, parameters);
      const bool is_condition = *site.yields == ExprType::kBool;
      const std::string joined = is_condition ? " or not " : " * ";
      const ParsedExpr plain =
          parse_expr("(" + first + ")" + joined + "(" + second + ")", site.site, parameters);
      const ParsedExpr named = parse_expr("again" + joined + "y", site.site, parameters, {lets});
      ASSERT_TRUE(named.ok()) << first << ": " << named.errors[0].message;
      ASSERT_EQ(named.expr, plain.expr) << first << "\n" << second;
      ASSERT_EQ(named.lets, (std::vector<std::size_t>{1, 2}));
      for (const ExprNode& node : named.expr.nodes) ASSERT_LE(node.end, named.expr.text.size());
    }
  }
}

TEST(let, a_name_takes_the_type_of_its_definition) {
  const std::vector<LetSymbol> lets =
      defined({{"whole", "q - k"}, {"real", "whole * 1.0"}, {"condition", "whole < 3"}}, {});
  EXPECT_EQ(lets[0].expr.root().type, ExprType::kI32);
  EXPECT_EQ(lets[1].expr.root().type, ExprType::kF32);
  EXPECT_EQ(lets[2].expr.root().type, ExprType::kBool);
  const auto score = [&](const char* text) {
    const ParsedExpr parsed = parse_expr(text, Site::kScore, {}, {lets});
    return parsed.ok() ? print_expr(parsed.expr) : parsed.errors[0].message;
  };
  EXPECT_EQ(score("whole // 2"), "(q - k) // 2");
  EXPECT_EQ(score("real // 2"), "left operand of '//': expected i32, got f32");
  EXPECT_EQ(score("real + 2"), "q - k + 2.0");
  EXPECT_EQ(score("select(condition, 1, whole)"), "select(q - k < 3, 1, q - k)");
  EXPECT_EQ(score("-whole * whole"), "-(q - k) * (q - k)");
}

TEST(let, names_that_grow_are_refused_before_they_are_written_out) {
  std::vector<std::pair<std::string, std::string>> definitions = {{"x0", "q * k + 1"}};
  for (int n = 1; n < 60; ++n) {
    const std::string before = "x" + std::to_string(n - 1);
    definitions.emplace_back("x" + std::to_string(n), before + " * (" + before + " + k)");
  }
  const std::vector<LetSymbol> lets = defined(definitions, {});
  EXPECT_FALSE(lets[7].expr.empty());
  EXPECT_TRUE(lets[9].expr.empty());
  const ParsedExpr large = parse_expr(lets[9].name + " * 2", Site::kScore, {}, {lets});
  EXPECT_TRUE(large.expr.empty());
  EXPECT_TRUE(large.ok()) << "it is said where the name is defined";
}

}  // namespace
}  // namespace lacuna
