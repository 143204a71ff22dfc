// The simplest formula of the same meaning, and questions to a folded one.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Folds constants and identities (x and true, select(true, a, b), x + 0 on i32, ...). f32 folding
/// happens only where the result is exact for every input.
Expr fold(Expr expr);

/// True if the (folded) expression is the literal `value`.
bool is_constant(const Expr& expr, double value);

/// Does the expression read this variable / this parameter (an index into `parameters`)?
bool uses(const Expr& expr, Variable variable);
bool uses_parameter(const Expr& expr, int parameter);

}  // namespace lacuna
