// Formulas that read the elements of a vector, which may lie side by side.
#include "compiler/expr/vector_read.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kVectors = {
    {"keys", ExprType::kF32, {ParamAxis::kBatch, ParamAxis::kNK, {ParamAxis::kFixed, 64}}, false},
    {"codes", ExprType::kI32, {ParamAxis::kNK, {ParamAxis::kFixed, 64}}, false},
    {"squares", ExprType::kF32, {{ParamAxis::kFixed, 64}, {ParamAxis::kFixed, 64}}, false},
};

int rank_of(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kIndexK, kVectors);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  return vector_read_rank(result.expr, Variable::kIndexD);
}

TEST(VectorRead, IsOneElementByTheLastIndex) {
  EXPECT_EQ(rank_of("keys[k, index_d]"), 3);
  EXPECT_EQ(rank_of("keys[k // 2, index_d]"), 3);
  EXPECT_EQ(rank_of("squares[k % 64, index_d]"), 2);
}

TEST(VectorRead, IsNothingElse) {
  EXPECT_EQ(rank_of("keys[k, index_d] * 2.0"), 0);
  EXPECT_EQ(rank_of("keys[k, index_d + 1]"), 0);
  EXPECT_EQ(rank_of("keys[index_d, k]"), 0);
  EXPECT_EQ(rank_of("squares[index_d, index_d]"), 0);
  EXPECT_EQ(rank_of("codes[k, index_d] * 1.0"), 0);
  EXPECT_EQ(vector_read_rank({}, Variable::kIndexD), 0);
}

}  // namespace
}  // namespace lacuna
