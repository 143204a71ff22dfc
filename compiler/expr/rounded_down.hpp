// a - a % chunk: the multiple of a parameter that is at a or before it. The parameter is declared
// to be at least 1, so that the multiple never falls while a rises, and costs one division.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Is it declared to be at least 1, and the same for all tokens of a head?
bool is_positive_of_head(const ParamSymbol& symbol);

/// Is the node such a multiple? Its operands are a and the remainder, whose second is the
/// parameter. `expr` has each part once (ExprBuilder).
bool is_rounded_down(const Expr& expr, const ExprNode& node);

/// Is there one?
bool rounds_down(const Expr& expr);

}  // namespace lacuna
