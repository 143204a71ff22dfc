// The part of a rule that is about one variable.
#pragma once

#include <optional>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// The smallest condition that has all of a rule's reads of a variable and that the rest reaches by
/// `and` and `or` alone: `rank < 3` of `rank < 3 or j == 0`. Nothing where the variable is not
/// read.
std::optional<Expr> sole_condition(const Expr& rule, Variable variable);

}  // namespace lacuna
