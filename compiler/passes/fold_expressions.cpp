// Folds constants in every expression of the program.
#include "compiler/expr/parse.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {

Program fold_expressions(Program program, const PassContext&) {
  Attend& attend = attend_of(program);
  const auto fold_in_place = [](Expr& expr) {
    if (!expr.empty()) expr = fold(std::move(expr));
  };
  fold_in_place(attend.mask);
  fold_in_place(attend.score);
  if (attend.gate) {
    fold_in_place(attend.gate->skip);
    fold_in_place(attend.gate->exempt);
  }
  return program;
}

}  // namespace lacuna
