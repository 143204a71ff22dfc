// Folds constants in every expression of the program.
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/fields.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {

Program fold_expressions(Program program, const PassContext&) {
  for (Node& node : program.nodes) {
    for_each_formula(node.op, [](Expr& expr) { expr = fold(std::move(expr)); });
  }
  return program;
}

}  // namespace lacuna
