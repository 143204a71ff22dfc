// Elements of tables whose places follow from those of a row and of a key: along a line, by parts
// of their indices, and what stands for them.
#include "compiler/expr/parts/element_parts.hpp"

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
    {"width", ExprType::kI32, {}, false},
};

Expr parsed(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kScore, kTables);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  return result.expr;
}

std::optional<TableLine> line_of(const std::string& text) { return table_line(parsed(text)); }

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

/// "of the row | of the key" for each index; "none".
std::string split_indices(const std::string& text) {
  const auto indices = index_parts(parsed(text));
  if (!indices) return "none";
  std::string parts;
  for (const IndexParts& index : *indices)
    parts +=
        (parts.empty() ? "" : ", ") + print_expr(index.of_row) + " | " + print_expr(index.of_key);
  return parts;
}

TEST(index_parts, are_sums_of_a_part_of_the_row_and_one_of_the_key) {
  EXPECT_EQ(split_indices("pairs[q, k // 64]"), "q | 0, 0 | k // 64");
  EXPECT_EQ(split_indices("bias[q // width - k // width + 63]"),
            "q // width + 63 | 0 - k // width");
  EXPECT_EQ(split_indices("bias[-(k % 8 - q % 8)]"), "-(0 - q % 8) | -(k % 8)");
}

TEST(index_parts, are_none_of_what_mixes_row_and_key) {
  EXPECT_EQ(split_indices("bias[abs(q // 8 - k // 8)]"), "none");
  EXPECT_EQ(split_indices("bias[(q - k) // 2]"), "none");
  EXPECT_EQ(split_indices("bias[q * k]"), "none");
  EXPECT_EQ(split_indices("2.0 * bias[k % 8]"), "none");
}

/// "variable = element; ...; rest"
std::string elements_of(const std::string& text) {
  const ElementParts taken = element_parts(parsed(text));
  std::string parts;
  for (const ElementPart& part : taken.parts)
    parts += std::string(part.variable == Variable::kScore ? "score" : "mass_before") +
             (part.line ? " on a line = " : " = ") + print_expr(part.element) + "; ";
  return parts + print_expr(taken.rest);
}

TEST(element_parts, stand_for_elements_of_lines_and_places) {
  EXPECT_EQ(elements_of("2.0 * pairs[q, k]"), "score on a line = pairs[q, k]; 2.0 * score");
  EXPECT_EQ(
      elements_of("pairs[q, k] * bias[q // 8 - k // 8]"),
      "score on a line = pairs[q, k]; mass_before = bias[q // 8 - k // 8]; score * mass_before");
}

TEST(element_parts, are_two_at_most_and_read_nothing_of_scores) {
  EXPECT_EQ(elements_of("max(pairs[q, k], max(pairs[q, k + 1], pairs[q, k + 2]))"),
            "score on a line = pairs[q, k]; mass_before on a line = pairs[q, k + 1]; "
            "max(score, max(mass_before, pairs[q, k + 2]))");
  EXPECT_EQ(elements_of("pairs[int(s), k]"), "pairs[int(s), k]");
  EXPECT_EQ(elements_of("pairs[int(pairs[q, k]), k]"),
            "score on a line = pairs[q, k]; pairs[int(score), k]");
  EXPECT_EQ(elements_of("bias[q * k]"), "bias[q * k]");
}

}  // namespace
}  // namespace lacuna
