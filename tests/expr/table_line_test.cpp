// Tables that a formula reads along a line.
#include "compiler/expr/parts/table_line.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/print_expr.hpp"
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
  EXPECT_EQ(line_of("pairs[int(s), k]"), std::nullopt);
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

/// "element: rest"
std::string part_of(const std::string& text) {
  const std::optional<LinePart> part = line_part(parse_expr(text, Site::kScore, kTables).expr);
  return part ? print_expr(part->element) + ": " + print_expr(part->rest) : "";
}

TEST(line_part, is_an_element_for_which_score_stands) {
  EXPECT_EQ(part_of("pairs[q, k]"), "pairs[q, k]: score");
  EXPECT_EQ(part_of("2.0 * pairs[q, k]"), "pairs[q, k]: 2.0 * score");
  EXPECT_EQ(part_of("max(pairs[q, k], bias[k // 2])"), "pairs[q, k]: max(score, bias[k // 2])");
  EXPECT_EQ(part_of("bias[k // 2]"), "");
  EXPECT_EQ(part_of("float(q * k)"), "");
}

}  // namespace
}  // namespace lacuna
