// The parts of an expression that stay the same: the largest ones, and no leaves.
#include "compiler/expr/nodes/constant_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kParameters = {
    {"tau", ExprType::kF32, {}, false},
    {"threshold", ExprType::kF32, {ParamAxis::kHeads, ParamAxis::kQTiles}, false},
    {"budget", ExprType::kF32, {ParamAxis::kHeads, ParamAxis::kKTiles}, false},
    {"start", ExprType::kI32, {ParamAxis::kNQ}, false},
};

/// What changes from tile to tile of a row, as for gates.
const std::vector<Variable> kOfTiles = {Variable::kTileMax, Variable::kGap, Variable::kJ,
                                        Variable::kK0, Variable::kK1};

Expr parsed(const std::string& text, Site site) {
  const ParsedExpr result = parse_expr(text, site, kParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  return result.expr;
}

/// The parts as they are written in `text`.
std::vector<std::string> parts_of(const std::string& text,
                                  const std::vector<Variable>& changing = kOfTiles,
                                  Site site = Site::kGate) {
  const Expr expr = parsed(text, site);
  const std::vector<std::int32_t> nodes = constant_parts(expr, changing);
  EXPECT_TRUE(std::ranges::is_sorted(nodes)) << text;
  std::vector<std::string> parts;
  for (const std::int32_t node : nodes) {
    const ExprNode& top = expr.nodes[static_cast<std::size_t>(node)];
    parts.push_back(expr.text.substr(top.begin, top.end - top.begin));
  }
  return parts;
}

using Parts = std::vector<std::string>;

TEST(constant_parts, are_the_largest) {
  EXPECT_EQ(parts_of("k1 >= q0 + n_k - n_q"), Parts{"q0 + n_k - n_q"});
  EXPECT_EQ(parts_of("tile_max < 2.0 * tau + 1.0"), Parts{"2.0 * tau + 1.0"});
  EXPECT_EQ(parts_of("gap < min(tau * 2.0, exp(tau))"), Parts{"min(tau * 2.0, exp(tau))"});
}

TEST(constant_parts, of_several_places_come_in_their_order) {
  EXPECT_EQ(parts_of("k0 < q0 + 1 and k1 > q1 - 1"), (Parts{"q0 + 1", "q1 - 1"}));
  EXPECT_EQ(parts_of("k0 < q0 + 1 or i + h == 2"), (Parts{"q0 + 1", "i + h == 2"}));
}

TEST(constant_parts, stand_below_what_changes) {
  // k1 keeps the sum from being one part, and the select from being another.
  EXPECT_EQ(parts_of("select(q0 > n_q // 2, k1 + (q1 - q0), i * 2) > 0"),
            (Parts{"q0 > n_q // 2", "q1 - q0", "i * 2"}));
  EXPECT_EQ(parts_of("-(k0 - (i + 1)) > 0"), Parts{"i + 1"});
}

TEST(constant_parts, are_more_than_a_leaf) {
  EXPECT_EQ(parts_of("k0 < q0"), Parts());
  EXPECT_EQ(parts_of("tile_max < -1.5"), Parts());
}

TEST(constant_parts, of_parameters_change_with_their_indices) {
  EXPECT_EQ(parts_of("tile_max < tau"), Parts{"tau"}) << "it is read from memory";
  EXPECT_EQ(parts_of("tile_max < threshold"), Parts{"threshold"}) << "indices h and i";
  EXPECT_EQ(parts_of("tile_max < budget"), Parts()) << "indices h and j";
  EXPECT_EQ(parts_of("tile_max < budget + tau"), Parts{"tau"});
  const std::vector<Variable> keys = {Variable::kK};
  EXPECT_EQ(parts_of("k < start[q + 1]", keys, Site::kMask), Parts{"start[q + 1]"});
  EXPECT_EQ(parts_of("q < start[k + (h + 1)]", keys, Site::kMask), Parts{"h + 1"});
}

TEST(constant_parts, can_be_none) {
  EXPECT_EQ(parts_of("tile_max < gap"), Parts());
  EXPECT_EQ(parts_of("not (tile_max < gap or k0 + j > k1)"), Parts());
  EXPECT_TRUE(constant_parts(Expr(), kOfTiles).empty()) << "of no expression";
}

TEST(constant_elements, are_of_parameters_alone_and_may_stand_within_a_part) {
  const std::vector<Variable> keys = {Variable::kK};
  const Expr expr = parsed("k < min(start[q + 1], n_k - 1 - start[q + 1]) + start[k]", Site::kMask);
  const std::vector<std::int32_t> elements = constant_elements(expr, keys);
  ASSERT_FALSE(elements.empty());
  for (const std::int32_t element : elements) {
    const ExprNode& node = expr.nodes[static_cast<std::size_t>(element)];
    EXPECT_EQ(expr.text.substr(node.begin, node.end - node.begin), "start[q + 1]");
  }
  EXPECT_TRUE(constant_elements(parsed("k < start[k] + n_k", Site::kMask), keys).empty());
}

TEST(constant_parts, can_be_the_whole) {
  const Expr expr = parsed("tau > 0.5 and i > h + 2", Site::kGate);
  EXPECT_EQ(constant_parts(expr, kOfTiles),
            std::vector{static_cast<std::int32_t>(expr.nodes.size()) - 1});
  EXPECT_EQ(parts_of("tile_max < tau", {}), Parts{"tile_max < tau"}) << "nothing changes";
}

}  // namespace
}  // namespace lacuna
