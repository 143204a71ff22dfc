// a - a % chunk: the multiple of a parameter that is at a or before it, where the parameter is
// declared to be at least 1. It never falls while a rises, and is one division.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Is the node such a multiple? Its operands are a and the remainder, whose second is the
/// parameter. `expr` has each part once (ExprBuilder).
bool is_rounded_down(const Expr& expr, const ExprNode& node);

/// Is there one?
bool rounds_down(const Expr& expr);

}  // namespace lacuna
