#include "compiler/expr/parts/table_line.hpp"

#include <cstddef>

#include "compiler/expr/bounds/along_tokens.hpp"
#include "compiler/expr/builder.hpp"

namespace lacuna {
namespace {

/// Distances beyond what an instruction adds to an address are no gain.
constexpr double kLongestStep = 256;

/// What an index gains from a key to the next, where that is one number.
std::optional<int> constant_slope(ExprBuilder& builder, int index) {
  const std::optional<int> slope = AlongTokens(builder).slope_of(index);
  if (!slope || builder[*slope].op != ExprOp::kLiteral) return std::nullopt;
  const double value = builder[*slope].literal;
  if (value > kLongestStep || value < -kLongestStep) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

std::optional<TableLine> table_line(const Expr& element) {
  if (element.empty() || element.root().op != ExprOp::kParameter) return std::nullopt;
  ExprBuilder builder;
  const ExprNode root = builder[builder.copy_all(element.nodes)];
  std::optional<TableLine> line;
  for (int dim = 0; dim < kMaxParamRank; ++dim) {
    const std::int32_t index = root.children[static_cast<std::size_t>(dim)];
    if (index < 0) break;
    if (!AlongTokens(builder).reads_token(index)) continue;
    const std::optional<int> along_k = constant_slope(builder, index);
    if (!along_k || *along_k == 0 || line) return std::nullopt;
    line = {dim, *along_k};
  }
  return line;
}

}  // namespace lacuna
