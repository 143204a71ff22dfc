// Formulas that are one element of a parameter, whose last index counts the elements of a vector.
// Where the elements of a vector lie side by side in memory, a kernel loads several at once.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Indices of an f32 parameter of which the formula is one element, if the last is `element` and no
/// other reads it; 0 of anything else.
int vector_read_rank(const Expr& formula, Variable element);

}  // namespace lacuna
