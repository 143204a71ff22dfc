// A part taken out of a formula, in which a variable then stands for its value.
#pragma once

#include <cstddef>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// The formula whose root is a node of this one.
Expr part_at(const Expr& formula, std::size_t node);

/// The formula with a variable in the place of a node. It must not read that variable itself.
Expr with_variable_at(const Expr& formula, std::size_t node, Variable variable);

}  // namespace lacuna
