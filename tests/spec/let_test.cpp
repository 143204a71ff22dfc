// Names of `let`: formulas that read them are the same as those with the definitions in their
// place.
#include <gtest/gtest.h>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/print_expr.hpp"
#include "compiler/spec/spec.hpp"
#include "tests/spec/spec_text.hpp"

namespace lacuna {
namespace {

using test::read, test::read_members;

/// Every place of a formula reads a name, and the same written out.
constexpr const char* kNamed = R"x(
  "let": {"$comment": "parts", "last": "n_k - n_q", "distance": "q + last - k", "causal": "distance >= 0",
          "half": "0.5", "cut": "tau * half", "apart": "q0 + last - k1", "small": "p < cut"},
  "params": {"tau": {"shape": "[heads]"}, "table": {"shape": "[n_q, 4]"}},
  "attention": {"mask": "causal", "score": "s - distance * cut + table[q, min(distance, 3)]", "sink": "cut"},
  "predictor": {"keep": "not small or apart < 8",
                "estimate": {"q": "tokens", "k": "tokens", "reference": "distance < 4"}},
  "gate": {"skip": "tile_max < cut", "exempt": "apart < 0", "skips": ["pv"]})x";
constexpr const char* kWrittenOut = R"x(
  "params": {"tau": {"shape": "[heads]"}, "table": {"shape": "[n_q, 4]"}},
  "attention": {"mask": "q + (n_k - n_q) - k >= 0",
                "score": "s - (q + (n_k - n_q) - k) * (tau * 0.5) + table[q, min(q + (n_k - n_q) - k, 3)]",
                "sink": "tau * 0.5"},
  "predictor": {"keep": "not p < tau * 0.5 or q0 + (n_k - n_q) - k1 < 8",
                "estimate": {"q": "tokens", "k": "tokens", "reference": "q + (n_k - n_q) - k < 4"}},
  "gate": {"skip": "tile_max < tau * 0.5", "exempt": "q0 + (n_k - n_q) - k1 < 0", "skips": ["pv"]})x";

TEST(Let, StandsForItsDefinitionInEveryFormula) {
  const VariantSpec named = read_members(kNamed), plain = read_members(kWrittenOut);
  ASSERT_EQ(named.let.size(), 7U);
  EXPECT_EQ(named.let[1].name, "distance");
  EXPECT_FALSE(named == plain) << "names are a part of a spec";
  EXPECT_TRUE(without_let(named) == plain);
  EXPECT_EQ(print_spec(without_let(named)), print_spec(plain));
}

TEST(Let, IsPrintedAndFormulasAsTheyWereWritten) {
  const VariantSpec spec = read_members(kNamed);
  const std::string printed = print_spec(spec);
  for (const char* text : {R"("distance": "q + last - k")", R"("mask": "causal")",
                           R"("score": "s - distance * cut + table[q, min(distance, 3)]")",
                           R"("reference": "distance < 4")", R"("keep": "not small or apart < 8")"})
    EXPECT_NE(printed.find(text), std::string::npos) << text << "\n" << printed;
  const VariantSpec again = read(printed).spec;
  EXPECT_TRUE(again == spec) << printed;
  EXPECT_EQ(print_spec(again), printed);
}

TEST(Let, AFormulaThatWasChangedIsPrintedWithoutNames) {
  VariantSpec spec = read_members(R"("let": {"far": "q - k"}, "attention": {"mask": "far < 8"})");
  spec.attention.mask.nodes =
      read_members(R"("attention": {"mask": "q - k < 9"})").attention.mask.nodes;
  EXPECT_NE(print_spec(spec).find(R"("mask": "q - k < 9")"), std::string::npos) << print_spec(spec);
}

TEST(Let, ADefinitionKeepsItsTypeAndFoldsWhereItStands) {
  const auto score = [](const std::string& let, const std::string& text) {
    return print_expr(
        read_members(R"("let": {)" + let + R"(}, "attention": {"score": ")" + text + "\"}")
            .attention.score);
  };
  EXPECT_EQ(score(R"("x": "q * 1.0")", "s + (x + k)"), "s + (q + k * 1.0)");
  EXPECT_EQ(score(R"("x": "q")", "s + (x + k)"), "s + (q + k)");
  EXPECT_EQ(score(R"("x": "64")", "s + q // (x * 2)"), "s + q // 128");
  EXPECT_EQ(score(R"("x": "q - k")", "s + x * x"), "s + (q - k) * (q - k)");
  EXPECT_EQ(score(R"("x": "k < q")", "s + select(x, 1, 0)"), "s + select(k < q, 1, 0)");
}

TEST(Let, NodesStandWhereTheNameStands) {
  const VariantSpec spec = read_members(
      R"("let": {"a_rather_long_name": "abs(q - k) * 2"}, "attention": {"mask": "8 > a_rather_long_name"})");
  const Expr& mask = spec.attention.mask;
  for (const ExprNode& node : mask.nodes) {
    ASSERT_LE(node.end, mask.text.size());
    if (is_variable(node, Variable::kQ) || node.op == ExprOp::kAbs) {
      EXPECT_EQ(mask.text.substr(node.begin, node.end - node.begin), "a_rather_long_name");
    }
  }
}

TEST(Let, OfASpecWithBranchesIsReadByAllOfThem) {
  const VariantSpec spec = read_members(R"x("let": {"causal": "k <= q", "late": "k0 > 64"},
    "attention": {"mask": "causal"},
    "branches": [{"name": "a", "weight": "0.5", "predictor": {"keep": "late"}},
                 {"name": "b", "weight": "0.5", "attention": {"mask": "causal and k > 3"}}])x");
  EXPECT_EQ(print_expr(spec.branches[0].attention.mask), "k <= q");
  EXPECT_EQ(print_expr(spec.branches[0].predictor->keep), "k0 > 64");
  EXPECT_EQ(print_expr(spec.branches[1].attention.mask), "k <= q and k > 3");
  const std::string printed = print_spec(spec);
  EXPECT_EQ(printed.find("\"causal\"}"), printed.rfind("\"causal\"}")) << "a's mask is the spec's";
  EXPECT_TRUE(read(printed).spec == spec) << printed;
  EXPECT_TRUE(without_let(spec).branches[0].let.empty());
}

}  // namespace
}  // namespace lacuna
