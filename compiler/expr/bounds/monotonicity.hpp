// How the value of an expression moves as one variable grows.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// With everything else held still; false is less than true. kUnknown: not known, or this and that.
enum class Monotonicity : std::uint8_t { kConstant, kRises, kFalls, kUnknown };

/// Functions count as what they are to mathematics; approximate ones may differ in their last bits.
Monotonicity monotonicity_of(const Expr& expr, Variable variable);

}  // namespace lacuna
