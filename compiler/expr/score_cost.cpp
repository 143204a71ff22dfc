#include "compiler/expr/score_cost.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "compiler/expr/table_line.hpp"

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
  std::vector<char> changes;
  for (const ExprNode& node : part.nodes) {  // children come before their parents
    bool is_changing = is_variable(node, Variable::kS) || is_variable(node, Variable::kK);
    for (const std::int32_t child : node.children)
      is_changing |= child >= 0 && changes[static_cast<std::size_t>(child)] != 0;
    changes.push_back(is_changing ? 1 : 0);
    if (is_changing && node.op != ExprOp::kVariable) ++count_of_kind(cost, node);
  }
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
