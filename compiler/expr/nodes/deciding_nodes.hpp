// Which values of an expression have to be exact: a condition or an integer is computed from them,
// and there an error in the last digit can change the result by any amount.
#pragma once

#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Of each node: is it, or what is made of it, compared, rounded, hashed or an integer? The root's
/// own value decides nothing.
std::vector<bool> deciding_nodes(const Expr& expr);

}  // namespace lacuna
