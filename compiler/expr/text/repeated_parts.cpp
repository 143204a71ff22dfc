#include "compiler/expr/text/repeated_parts.hpp"

#include <algorithm>

namespace lacuna {
namespace {

bool is_costly(ExprOp op) { return is_special_function(op) || op == ExprOp::kHash; }

/// An operand that is asked for only if another one has some value.
bool is_conditional(ExprOp op, std::size_t operand) {
  return operand > 0 && (op == ExprOp::kSelect || op == ExprOp::kAnd || op == ExprOp::kOr);
}

/// Of each node: whether its text calls a costly function.
std::vector<bool> costly_parts(const Expr& expr, const std::vector<bool>& is_known) {
  std::vector<bool> is_part(expr.nodes.size());
  for (std::size_t id = 0; id < is_part.size(); ++id) {
    const ExprNode& node = expr.nodes[id];
    const bool has_costly = std::ranges::any_of(node.children, [&](std::int32_t child) {
      return child >= 0 && is_part[static_cast<std::size_t>(child)];
    });
    is_part[id] = !is_known[id] && (has_costly || is_costly(node.op));
  }
  return is_part;
}

}  // namespace

std::vector<bool> repeated_parts(const Expr& expr, std::int32_t root,
                                 const std::vector<bool>& is_known) {
  const std::size_t count = expr.nodes.size();
  constexpr std::uint32_t kMany = 2;
  const std::vector<bool> is_part = costly_parts(expr, is_known);
  std::vector<bool> is_repeated(count), is_needed(count);
  std::vector<std::uint32_t> places(count);  // where it is printed, at most kMany
  is_needed[static_cast<std::size_t>(root)] = true;
  places[static_cast<std::size_t>(root)] = 1;
  // From the root down: operands come behind what reads them.
  for (auto id = static_cast<std::size_t>(root) + 1; id-- > 0;) {
    const ExprNode& node = expr.nodes[id];
    if (places[id] == 0 || is_known[id]) continue;
    is_repeated[id] = places[id] == kMany && is_needed[id] && is_part[id];
    for (std::size_t n = 0; n < node.children.size() && node.children[n] >= 0; ++n) {
      const auto child = static_cast<std::size_t>(node.children[n]);
      places[child] = std::min(kMany, places[child] + (is_repeated[id] ? 1 : places[id]));
      is_needed[child] = is_needed[child] || (is_needed[id] && !is_conditional(node.op, n));
    }
  }
  return is_repeated;
}

}  // namespace lacuna
