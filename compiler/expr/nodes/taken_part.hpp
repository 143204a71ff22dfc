// Takes a part out of a formula: the part becomes a formula of its own, and in the first formula a
// variable takes its place. A kernel evaluates the part first and passes its value as that
// variable.
#pragma once

#include <cstddef>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// The formula whose root is a node of this one.
Expr part_at(const Expr& formula, std::size_t node);

/// The formula in which `variable` replaces a node. The formula must not read `variable` elsewhere.
Expr with_variable_at(const Expr& formula, std::size_t node, Variable variable);

}  // namespace lacuna
