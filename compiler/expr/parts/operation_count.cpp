#include "compiler/expr/parts/operation_count.hpp"

#include <cstddef>
#include <vector>

#include "compiler/expr/nodes/constant_parts.hpp"

namespace lacuna {
namespace {

int& count_of_kind(ScoreCost& cost, const ExprNode& node) {
  if (is_special_function(node.op)) return cost.special_functions;
  switch (node.op) {
    case ExprOp::kParameter:
      return cost.loads;
    case ExprOp::kToF32:
      return cost.integer_operations;
    case ExprOp::kSelect:
      return cost.decisions;
    default:
      break;
  }
  if (node.type == ExprType::kBool) return cost.decisions;
  return node.type == ExprType::kI32 ? cost.integer_operations : cost.float_operations;
}

}  // namespace

void add_along_row(ScoreCost& cost, const Expr& part) {
  constexpr Variable kAlongRow[] = {Variable::kS, Variable::kK, Variable::kP, Variable::kScore,
                                    Variable::kMassBefore};
  const std::vector<bool> changes = changing_nodes(part, kAlongRow);
  for (std::size_t n = 0; n < part.nodes.size(); ++n)
    if (changes[n] && part.nodes[n].op != ExprOp::kVariable) ++count_of_kind(cost, part.nodes[n]);
}

ScoreCost cost_along_row(const Expr& part) {
  ScoreCost cost;
  add_along_row(cost, part);
  return cost;
}

}  // namespace lacuna
