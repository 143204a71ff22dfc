// The divisors that many divisions share.
#include "compiler/expr/nodes/constant_divisors.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"
#include "compiler/expr/text/print_cuda.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kDivisors = {
    {"stride", ExprType::kI32, {}, false},
    {"block", ExprType::kI32, {ParamAxis::kHeads}, false},
    {"group", ExprType::kI32, {ParamAxis::kNQ}, false},
};

Expr mask(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kMask, kDivisors);
  EXPECT_TRUE(result.ok()) << text;
  return result.expr;
}

std::vector<std::string> divisors_of(const std::string& text, std::vector<Variable> changing) {
  const Expr expr = mask(text);
  std::vector<std::string> divisors;
  for (const std::int32_t node : constant_divisors(expr, changing)) {
    const ExprNode& top = expr.nodes[static_cast<std::size_t>(node)];
    divisors.push_back(expr.text.substr(top.begin, top.end - top.begin));
  }
  return divisors;
}

using Texts = std::vector<std::string>;

TEST(constant_divisors, stay_while_the_dividend_changes) {
  EXPECT_EQ(divisors_of("(q - k) % stride == 0", {Variable::kQ, Variable::kK}), Texts{"stride"});
  EXPECT_EQ(divisors_of("k // block == q // n_q", {Variable::kQ, Variable::kK}),
            (Texts{"block", "n_q"}));
  EXPECT_EQ(divisors_of("k // (stride + 1) == q // stride", {Variable::kK}), Texts{"stride + 1"})
      << "q // stride is there as a whole";
}

TEST(constant_divisors, are_no_literals_and_read_nothing_that_changes) {
  const std::vector<Variable> pair = {Variable::kQ, Variable::kK};
  EXPECT_TRUE(divisors_of("k // 64 == q % 7", pair).empty());
  EXPECT_TRUE(divisors_of("k // group[q] == k % (q + 1)", pair).empty());
  EXPECT_EQ(divisors_of("k // group[q] == 0", {Variable::kK}), Texts{"group[q]"});
}

TEST(constant_divisors, are_printed_as_what_stands_for_them) {
  const Expr expr = mask("k % stride == 0 and k // (stride + 1) < 4");
  const auto divisors = constant_divisors(expr, std::vector<Variable>{Variable::kK});
  ASSERT_EQ(divisors.size(), 2U);
  CudaNames names{[](Variable) { return std::string("k"); },
                  [](const ParamSymbol& symbol) { return symbol.name; }};
  names.divisor = [&](std::int32_t node) {
    return node == divisors[0] ? std::string("prepared") : std::string();
  };
  EXPECT_EQ(
      print_cuda(expr, names),
      "lacuna::modulo(k, prepared) == 0 && lacuna::floor_divide(k, lacuna::at(stride) + 1) < 4");
}

}  // namespace
}  // namespace lacuna
