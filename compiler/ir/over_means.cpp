#include "compiler/ir/over_means.hpp"

#include "compiler/expr/builder.hpp"
#include "compiler/expr/expr_tables.hpp"

namespace lacuna {

ParamSpec tokens_param() {
  ParamSpec param;
  param.symbol.name = kTokensParam;
  param.symbol.type = ExprType::kI32;
  param.minimum = 0;
  return param;
}

Expr over_means(const Expr& expr, int tokens, const std::vector<ParamSpec>& params) {
  if (expr.empty()) return expr;
  std::vector<ParamSymbol> symbols;
  for (const ParamSpec& param : params) symbols.push_back(param.symbol);
  ExprBuilder builder;
  const int n_tokens =
      builder.parameter(static_cast<int>(params.size()) - 1, ExprType::kI32, kNoChildren);
  const auto last_token = [&] {
    const int first =
        builder.make(ExprOp::kMultiply, builder.variable(Variable::kK), builder.integer(tokens));
    const int last = builder.make(ExprOp::kAdd, first, builder.integer(tokens - 1));
    return builder.make(ExprOp::kMin, last,
                        builder.make(ExprOp::kSubtract, n_tokens, builder.integer(1)));
  };
  std::vector<int> moved;
  for (const ExprNode& node : expr.nodes) {
    const int id = is_variable(node, Variable::kK) ? last_token()
                   : is_variable(node, Variable::kNK)
                       ? n_tokens
                       : builder.copy(node, moved_children(node, moved));
    builder.locate(id, node.begin, node.end);
    moved.push_back(id);
  }
  Expr result = builder.extract(moved.back(), symbols);
  result.text = expr.text;
  return result;
}

}  // namespace lacuna
