#include "compiler/expr/parts/score_cost.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "compiler/expr/parts/constant_parts.hpp"
#include "compiler/expr/parts/table_line.hpp"

namespace lacuna {
namespace {

int& count_of_kind(ScoreCost& cost, const ExprNode& node) {
  switch (node.op) {
    case ExprOp::kParameter:
      return cost.loads;
    case ExprOp::kToF32:
      return cost.integer_operations;
    case ExprOp::kDivide:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kSqrt:
    case ExprOp::kTanh:
      return cost.special_functions;
    case ExprOp::kSelect:
      return cost.decisions;
    default:
      break;
  }
  if (node.type == ExprType::kBool) return cost.decisions;
  return node.type == ExprType::kI32 ? cost.integer_operations : cost.float_operations;
}

/// Adds the nodes that change with s or k.
void add_changing_nodes(ScoreCost& cost, const Expr& part) {
  constexpr Variable kAlongRow[] = {Variable::kS, Variable::kK};
  const std::vector<bool> changes = changing_nodes(part, kAlongRow);
  for (std::size_t n = 0; n < part.nodes.size(); ++n)
    if (changes[n] && part.nodes[n].op != ExprOp::kVariable) ++count_of_kind(cost, part.nodes[n]);
}

}  // namespace

ScoreCost score_cost(const ScoreParts& parts) {
  ScoreCost cost{.multiply_adds = 1};
  if (!parts.slope.empty()) ++cost.multiply_adds;
  if (!parts.core.empty()) ++cost.float_operations;  // s = product * scale
  add_changing_nodes(cost, parts.core);
  if (parts.rest.empty()) return cost;
  ++cost.multiply_adds;
  if (table_line(parts.rest)) {
    ++cost.loads;
  } else {
    add_changing_nodes(cost, parts.rest);
  }
  return cost;
}

std::string print_score_cost(const ScoreCost& cost) {
  std::string text = std::to_string(cost.multiply_adds) + " FFMA";
  for (const auto& [count, name] :
       {std::pair{cost.float_operations, "other f32"}, std::pair{cost.special_functions, "special"},
        std::pair{cost.loads, "load"}, std::pair{cost.integer_operations, "integer"},
        std::pair{cost.decisions, "compare or select"}}) {
    if (count > 0) text += ", " + std::to_string(count) + " " + name;
  }
  return text;
}

std::string print_score_form(const ScoreParts& parts) {
  std::string text = parts.factor.empty() ? "" : "factor * ";
  text += parts.core.empty() ? "s" : "core";
  if (!parts.offset.empty()) text += parts.slope.empty() ? " + constant in k" : " + affine in k";
  if (!parts.rest.empty()) text += table_line(parts.rest) ? " + table along a line" : " + rest";
  return text;
}

}  // namespace lacuna
