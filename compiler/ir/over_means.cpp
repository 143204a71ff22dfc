#include "compiler/ir/over_means.hpp"

#include <algorithm>
#include <string_view>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/declared_ranges.hpp"

namespace lacuna {
namespace {

ParamSpec count_param(std::string_view name) {
  ParamSpec param;
  param.symbol.name = name;
  param.symbol.type = ExprType::kI32;
  param.minimum = 0;
  note_declared_range(param);
  return param;
}

/// What takes the place of a variable.
class Counts {
 public:
  Counts(MeansOf means, const std::vector<ParamSpec>& params, bool moves_queries,
         ExprBuilder& builder)
      : means_(means), moves_queries_(moves_queries), builder_(builder) {
    const auto param = [&](std::string_view name) {
      const auto found =
          std::ranges::find(params, name, [](const ParamSpec& spec) { return spec.symbol.name; });
      return builder_.parameter(static_cast<int>(found - params.begin()), ExprType::kI32,
                                kNoChildren);
    };
    if (means.queries > 1) n_queries_ = param(kQueriesParam);
    if (means.keys > 1) n_tokens_ = param(kTokensParam);
  }

  /// -1: the node stays as it is.
  int of(const ExprNode& node) {
    if (means_.keys > 1 && is_variable(node, Variable::kK)) return last_key();
    if (means_.keys > 1 && is_variable(node, Variable::kNK)) return n_tokens_;
    if (means_.queries == 1) return -1;
    if (is_variable(node, Variable::kNQ)) return n_queries_;
    return moves_queries_ && is_variable(node, Variable::kQ) ? first_query() : -1;
  }

 private:
  int last_key() {
    const int first = builder_.make(ExprOp::kMultiply, builder_.variable(Variable::kK),
                                    builder_.integer(means_.keys));
    const int last = builder_.make(ExprOp::kAdd, first, builder_.integer(means_.keys - 1));
    return builder_.make(ExprOp::kMin, last,
                         builder_.make(ExprOp::kSubtract, n_tokens_, builder_.integer(1)));
  }
  int first_query() {
    return builder_.make(ExprOp::kMultiply, builder_.variable(Variable::kQ),
                         builder_.integer(means_.queries));
  }

  MeansOf means_;
  bool moves_queries_;
  ExprBuilder& builder_;
  int n_tokens_ = -1, n_queries_ = -1;
};

Expr replaced(const Expr& expr, MeansOf means, const std::vector<ParamSpec>& params,
              bool moves_queries) {
  if (expr.empty() || (means.keys == 1 && means.queries == 1)) return expr;
  std::vector<ParamSymbol> symbols;
  for (const ParamSpec& param : params) symbols.push_back(param.symbol);
  ExprBuilder builder;
  Counts counts(means, params, moves_queries, builder);
  return rewritten(builder, expr, std::move(symbols),
                   [&](const ExprNode& node, const ExprChildren& children) {
                     const int other = counts.of(node);
                     return other >= 0 ? other : builder.copy(node, children);
                   });
}

}  // namespace

std::vector<ParamSpec> token_params(MeansOf means) {
  std::vector<ParamSpec> params;
  if (means.keys > 1) params.push_back(count_param(kTokensParam));
  if (means.queries > 1) params.push_back(count_param(kQueriesParam));
  return params;
}

void take_means(MeansOf means, Program& program) {
  Attend& attend = attend_of(program);
  attend.mask = replaced(attend.mask, means, program.params, true);
  attend.score = replaced(attend.score, means, program.params, true);
  attend.sink = replaced(attend.sink, means, program.params, true);
  for (Node& node : program.nodes)
    if (auto* merge = std::get_if<MergeBranch>(&node.op))
      merge->weight = replaced(merge->weight, means, program.params, false);
}

}  // namespace lacuna
