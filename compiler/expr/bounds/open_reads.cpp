#include "compiler/expr/bounds/open_reads.hpp"

#include <algorithm>

#include "compiler/expr/bounds/interval.hpp"
#include "compiler/expr/bounds/monotonicity.hpp"
#include "compiler/expr/builder.hpp"
#include "compiler/expr/print_expr.hpp"
#include "compiler/expr/rounded_down.hpp"

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

/// Which nodes differ from pair to pair of a tile.
std::vector<bool> varying_nodes(const Expr& mask) {
  std::vector<bool> varies;
  varies.reserve(mask.nodes.size());
  for (const ExprNode& node : mask.nodes) {
    const bool is_token = is_variable(node, Variable::kQ) || is_variable(node, Variable::kK);
    varies.push_back(is_token || std::ranges::any_of(node.children, [&](std::int32_t child) {
                       return child >= 0 && varies[static_cast<std::size_t>(child)];
                     }));
  }
  return varies;
}

bool has_loose_bounds(ExprOp op) {
  switch (op) {
    case ExprOp::kModulo:
    case ExprOp::kBitAnd:
    case ExprOp::kBitXor:
    case ExprOp::kBitOr:
    case ExprOp::kHash:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kTanh:
      return true;
    default:
      return false;
  }
}

/// How often each node of a formula, written out, reads a variable; multiples read their number
/// once.
std::vector<int> reads_of(const Expr& mask, Variable variable) {
  constexpr int kMany = 2;
  std::vector<int> reads;
  reads.reserve(mask.nodes.size());
  for (const ExprNode& node : mask.nodes) {
    int count = is_variable(node, variable) ? 1 : 0;
    const std::size_t children = is_rounded_down(mask, node) ? 1 : node.children.size();
    for (std::size_t n = 0; n < children && node.children[n] >= 0; ++n)
      count += reads[static_cast<std::size_t>(node.children[n])];
    reads.push_back(std::min(count, kMany));
  }
  return reads;
}

/// The first comparison that reads a token more than once, and not always so that it rises, or
/// falls, with the token.
std::string comparison_of_one_token(const Expr& mask) {
  const std::vector<int> of_q = reads_of(mask, Variable::kQ), of_k = reads_of(mask, Variable::kK);
  for (std::size_t n = 0; n < mask.nodes.size(); ++n) {
    if (!is_comparison(mask.nodes[n].op) || (of_q[n] < 2 && of_k[n] < 2)) continue;
    Expr part = mask;
    part.nodes.resize(n + 1);
    const auto is_loose = [&](int reads, Variable variable) {
      return reads > 1 && monotonicity_of(part, variable) == Monotonicity::kUnknown;
    };
    if (is_loose(of_q[n], Variable::kQ) || is_loose(of_k[n], Variable::kK)) return print_expr(part);
  }
  return "";
}

/// Of each node: is it read by nothing but multiples, which have bounds of their own?
std::vector<bool> read_by_rounding(const Expr& mask) {
  std::vector<bool> by_rounding(mask.nodes.size()), otherwise(mask.nodes.size());
  for (const ExprNode& node : mask.nodes) {
    const bool is_rounded = is_rounded_down(mask, node);
    for (std::size_t n = 0; n < node.children.size() && node.children[n] >= 0; ++n)
      (is_rounded ? by_rounding : otherwise)[static_cast<std::size_t>(node.children[n])] = true;
  }
  for (std::size_t n = 0; n < otherwise.size(); ++n)
    if (otherwise[n]) by_rounding[n] = false;
  return by_rounding;
}

}  // namespace

std::vector<std::string> open_reads(const Expr& mask) {
  std::vector<std::string> names;
  const std::vector<bool> varies = varying_nodes(mask);
  for (std::size_t n = 0; n < mask.nodes.size(); ++n) {
    const ExprNode& node = mask.nodes[n];
    if (node.op != ExprOp::kParameter || !varies[n]) continue;
    const ParamSymbol& symbol = mask.parameters[node.symbol];
    if (!is_bounded(node, symbol, varies) && std::ranges::count(names, symbol.name) == 0)
      names.push_back(symbol.name);
  }
  return names;
}

std::string loose_part(const Expr& mask) {
  if (mask.empty()) return "";
  const std::vector<bool> varies = varying_nodes(mask), is_bounded = read_by_rounding(mask);
  for (std::size_t n = 0; n < mask.nodes.size(); ++n) {
    if (!varies[n] || is_bounded[n] || !has_loose_bounds(mask.nodes[n].op)) continue;
    Expr part = mask;
    part.nodes.resize(n + 1);
    return print_expr(part);
  }
  std::string unsettled = unsettled_comparison(mask);
  return unsettled.empty() ? comparison_of_one_token(mask) : unsettled;
}

}  // namespace lacuna
