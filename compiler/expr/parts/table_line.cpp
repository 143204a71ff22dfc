#include "compiler/expr/parts/table_line.hpp"

#include <cstddef>
#include <vector>

#include "compiler/expr/bounds/along_tokens.hpp"
#include "compiler/expr/builder.hpp"

namespace lacuna {
namespace {

/// Distances beyond what an instruction adds to an address are no gain.
constexpr double kLongestStep = 256;

/// What an index gains from a token to the next, where that is one number.
std::optional<int> constant_slope(ExprBuilder& builder, int index, Variable token) {
  AlongTokens along(builder, token);
  const std::optional<int> slope = along.slope_of(index);
  if (!slope || builder[*slope].op != ExprOp::kLiteral) return std::nullopt;
  const double value = builder[*slope].literal;
  if (value > kLongestStep || value < -kLongestStep) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

std::optional<TableLine> table_line(const Expr& formula) {
  if (formula.empty() || formula.root().op != ExprOp::kParameter) return std::nullopt;
  ExprBuilder builder;
  const ExprNode element = builder[builder.copy_all(formula.nodes)];
  std::optional<TableLine> line;
  for (int dim = 0; dim < kMaxParamRank; ++dim) {
    const std::int32_t index = element.children[static_cast<std::size_t>(dim)];
    if (index < 0) break;
    const std::optional<int> along_q = constant_slope(builder, index, Variable::kQ);
    const std::optional<int> along_k = constant_slope(builder, index, Variable::kK);
    if (!along_q || !along_k) return std::nullopt;
    if (*along_q == 0 && *along_k == 0) continue;
    if (line) return std::nullopt;
    line = {dim, *along_q, *along_k};
  }
  return line && line->along_k != 0 ? line : std::nullopt;
}

}  // namespace lacuna
