// How the value of an expression moves as one variable grows.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// With everything else held still; false is less than true. kAnyhow: not known, or this and that.
enum class Trend : std::uint8_t { kStill, kRises, kFalls, kAnyhow };

/// Functions count as what they are to mathematics; approximate ones may differ in their last bits.
Trend trend_of(const Expr& expr, Variable variable);

}  // namespace lacuna
