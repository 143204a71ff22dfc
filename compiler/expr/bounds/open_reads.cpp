#include "compiler/expr/bounds/open_reads.hpp"

#include <algorithm>

#include "compiler/expr/builder.hpp"

namespace lacuna {
namespace {

/// Do bounds of its last index bound the element? Then no other index differs within a tile.
bool is_bounded(const ExprNode& node, const ParamSymbol& symbol, const std::vector<bool>& varies) {
  const std::size_t last = symbol.shape.size() - 1;
  for (std::size_t d = 0; d <= last; ++d) {
    const bool differs = varies[static_cast<std::size_t>(node.children[d])];
    if (differs && (d < last || !symbol.monotone)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> open_reads(const Expr& mask) {
  std::vector<std::string> names;
  std::vector<bool> varies;  // from pair to pair of a tile, by node
  varies.reserve(mask.nodes.size());
  for (const ExprNode& node : mask.nodes) {
    const bool is_token = is_variable(node, Variable::kQ) || is_variable(node, Variable::kK);
    varies.push_back(is_token || std::ranges::any_of(node.children, [&](std::int32_t child) {
                       return child >= 0 && varies[static_cast<std::size_t>(child)];
                     }));
    if (node.op != ExprOp::kParameter || !varies.back()) continue;
    const ParamSymbol& symbol = mask.parameters[node.symbol];
    if (!is_bounded(node, symbol, varies) && std::ranges::count(names, symbol.name) == 0)
      names.push_back(symbol.name);
  }
  return names;
}

}  // namespace lacuna
