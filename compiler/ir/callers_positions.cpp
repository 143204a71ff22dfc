#include "compiler/ir/callers_positions.hpp"

#include <algorithm>
#include <vector>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/fold.hpp"
#include "compiler/ir/fields.hpp"
#include "compiler/spec/declared_ranges.hpp"

namespace lacuna {
namespace {

constexpr std::array<Variable, 2> kTokenVariables = {Variable::kQ, Variable::kK};
constexpr std::array<ParamAxis, 2> kTokenAxes = {ParamAxis::kNQ, ParamAxis::kNK};
using OrderIndices = std::array<int, 2>;  ///< of each order among the parameters; -1: not read

ParamSpec order_param(std::size_t side) {
  ParamSpec param;
  param.symbol.name = kOrderParamNames[side];
  param.symbol.type = ExprType::kI32;
  param.symbol.shape = {ParamDim(kTokenAxes[side])};
  param.minimum = 0;
  note_declared_range(param);
  return param;
}

Expr looked_up(const Expr& expr, const OrderIndices& indices,
               const std::vector<ParamSymbol>& symbols) {
  ExprBuilder builder;
  const auto look_up = [&](const ExprNode& node, const ExprChildren& children) {
    const int id = builder.copy(node, children);
    for (std::size_t side = 0; side < kTokenVariables.size(); ++side)
      if (indices[side] >= 0 && is_variable(node, kTokenVariables[side]))
        return builder.parameter(indices[side], ExprType::kI32, {id, -1, -1, -1});
    return id;
  };
  return rewritten(builder, expr, symbols, look_up);
}

}  // namespace

void take_callers_positions(Program& program) {
  if (find_op<Permute>(program) == nullptr) return;
  const auto visit = [&](const auto& use, bool of_weights) {
    for (Node& node : program.nodes)
      if (std::holds_alternative<MergeBranch>(node.op) == of_weights)
        for_each_formula(node.op, use);
  };
  OrderIndices indices = {-1, -1};
  for (std::size_t side = 0; side < kTokenVariables.size(); ++side) {
    bool is_read = false;
    visit([&](const Expr& expr) { is_read = is_read || uses(expr, kTokenVariables[side]); }, false);
    if (!is_read) continue;
    indices[side] = static_cast<int>(program.params.size());
    program.params.push_back(order_param(side));
  }
  if (order_params(program) == 0) return;
  std::vector<ParamSymbol> symbols;
  symbols.reserve(program.params.size());
  for (const ParamSpec& param : program.params) symbols.push_back(param.symbol);
  const auto look_up = [&](const OrderIndices& orders) {
    return [&symbols, orders](Expr& expr) {
      if (!expr.empty()) expr = looked_up(expr, orders, symbols);
    };
  };
  visit(look_up(indices), false);
  visit(look_up({-1, -1}), true);  // q of a weight is the caller's already
}

std::size_t order_params(const Program& program) {
  return static_cast<std::size_t>(std::ranges::count_if(program.params, [](const ParamSpec& param) {
    return std::ranges::find(kOrderParamNames, param.symbol.name) != kOrderParamNames.end();
  }));
}

}  // namespace lacuna
