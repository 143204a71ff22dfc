// Which parts of an expression stay the same while only some variables change, so that they can be
// computed once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Of each node: does it read one of `changing`?
std::vector<bool> changing_nodes(const Expr& expr, std::span<const Variable> changing);

/// The nodes at the top of the largest parts that read none of `changing` and are more than a
/// literal or a variable, in ascending order.
std::vector<std::int32_t> constant_parts(const Expr& expr, std::span<const Variable> changing);

/// The elements of parameters that read none of `changing`, in ascending order.
std::vector<std::int32_t> constant_elements(const Expr& expr, std::span<const Variable> changing);

}  // namespace lacuna
