// Which divisors of `//` and `%` stay the same while what they divide changes, so that their
// reciprocal can be prepared once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Their nodes, without literals, in ascending order. `changing`: as for constant_parts.
std::vector<std::int32_t> constant_divisors(const Expr& expr, std::span<const Variable> changing);

}  // namespace lacuna
