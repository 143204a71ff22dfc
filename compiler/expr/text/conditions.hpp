// Operators on conditions that nodes have no operator for: written with and, or, not. Part of the
// parser: the interval analysis and both backends see nothing new.
#pragma once

#include <array>

#include "compiler/expr/builder.hpp"

namespace lacuna {

/// Whether `op` also takes conditions: `select` as its last two operands, `==` and `!=` as both.
bool takes_conditions(ExprOp op);

/// The node that equals `op` of these operands, all of which are conditions.
int make_of_conditions(ExprBuilder& builder, ExprOp op, const std::array<int, 3>& operands);

}  // namespace lacuna
