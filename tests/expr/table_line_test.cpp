// Tables that a formula reads along a line.
#include "compiler/expr/parts/table_line.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kTables = {
    {"bias", ExprType::kF32, {ParamAxis::kNK}, false},
    {"of_head", ExprType::kF32, {ParamAxis::kHeads, ParamAxis::kNK}, false},
    {"pairs", ExprType::kF32, {ParamAxis::kNQ, ParamAxis::kNK}, false},
    {"stride", ExprType::kI32, {}, false},
};

std::optional<TableLine> line_of(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kScore, kTables);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  return table_line(result.expr);
}

TEST(table_line, follows_one_index) {
  EXPECT_EQ(line_of("bias[q - k]"), (TableLine{0, -1}));
  EXPECT_EQ(line_of("bias[k]"), (TableLine{0, 1}));
  EXPECT_EQ(line_of("bias[2 * (k - q) + n_k - 1]"), (TableLine{0, 2}));
  EXPECT_EQ(line_of("bias[q + n_k - n_q - k]"), (TableLine{0, -1}));
}

TEST(table_line, is_of_a_row_whatever_else_changes_from_row_to_row) {
  EXPECT_EQ(line_of("of_head[q - k]"), (TableLine{1, -1}));
  EXPECT_EQ(line_of("pairs[q, k]"), (TableLine{1, 1}));
  EXPECT_EQ(line_of("pairs[q // 2, 3 - k]"), (TableLine{1, -1}));
  EXPECT_EQ(line_of("pairs[k, q]"), (TableLine{0, 1}));
  EXPECT_EQ(line_of("bias[q // 2 + k]"), (TableLine{0, 1}));
}

TEST(table_line, is_no_line_where_two_indices_change_or_one_bends) {
  EXPECT_EQ(line_of("pairs[k, k]"), std::nullopt);
  EXPECT_EQ(line_of("pairs[k // 2, k]"), std::nullopt);
  EXPECT_EQ(line_of("bias[abs(q - k)]"), std::nullopt);
  EXPECT_EQ(line_of("bias[min(q - k, 128)]"), std::nullopt);
  EXPECT_EQ(line_of("bias[(q - k) // 2]"), std::nullopt);
  EXPECT_EQ(line_of("bias[stride * k]"), std::nullopt);
  EXPECT_EQ(line_of("bias[1000 * k]"), std::nullopt);
  EXPECT_EQ(line_of("bias[q * k]"), std::nullopt);
  EXPECT_EQ(line_of("bias[q * q + k]"), std::nullopt);  // which may wrap
  EXPECT_EQ(line_of("bias[q]"), std::nullopt);
}

}  // namespace
}  // namespace lacuna
