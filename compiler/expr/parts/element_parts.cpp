#include "compiler/expr/parts/element_parts.hpp"

#include <cstddef>
#include <utility>

#include "compiler/expr/nodes/constant_parts.hpp"
#include "compiler/expr/nodes/taken_part.hpp"

namespace lacuna {
namespace {

constexpr Variable kStandIns[] = {Variable::kScore, Variable::kMassBefore};
/// Variables that an index may not read: the logit, and those that take the places of parts.
constexpr Variable kValues[] = {Variable::kS, Variable::kP, Variable::kScore,
                                Variable::kMassBefore};

/// The part that a node is, if it is one.
std::optional<ElementPart> part_of(const Expr& rest, std::size_t node, Variable variable) {
  const ExprNode& of = rest.nodes[node];
  if (of.op != ExprOp::kParameter || of.type != ExprType::kF32) return std::nullopt;
  ElementPart part{variable, part_at(rest, node), std::nullopt, {}};
  if (changing_nodes(part.element, kValues).back()) return std::nullopt;
  part.line = table_line(part.element);
  if (part.line) return part;
  auto indices = index_parts(part.element);
  if (!indices) return std::nullopt;
  part.indices = std::move(*indices);
  return part;
}

}  // namespace

ElementParts element_parts(Expr rest) {
  ElementParts taken{{}, std::move(rest)};
  for (const Variable variable : kStandIns) {
    constexpr Variable kKey[] = {Variable::kK};
    const std::vector<bool> changes = changing_nodes(taken.rest, kKey);
    for (std::size_t n = 0; n < taken.rest.nodes.size(); ++n) {
      if (!changes[n]) continue;
      auto part = part_of(taken.rest, n, variable);
      if (!part) continue;
      taken.rest = with_variable_at(taken.rest, n, variable);
      taken.parts.push_back(std::move(*part));
      break;
    }
  }
  return taken;
}

}  // namespace lacuna
