#include "compiler/expr/nodes/taken_part.hpp"

#include <span>

#include "compiler/expr/builder.hpp"

namespace lacuna {

Expr part_at(const Expr& formula, std::size_t node) {
  ExprBuilder builder;
  const int root = builder.copy_all(std::span(formula.nodes).first(node + 1));
  return builder.extract(root, formula.parameters);
}

Expr with_variable_at(const Expr& formula, std::size_t node, Variable variable) {
  ExprBuilder builder;
  return rewritten(builder, formula, formula.parameters,
                   [&](const ExprNode& of, const ExprChildren& children) {
                     return &of == &formula.nodes[node] ? builder.variable(variable)
                                                        : builder.copy(of, children);
                   });
}

}  // namespace lacuna
