// Parts of a formula that its CUDA text would call for more than once. Part of print_cuda.
#pragma once

#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Of each node below `root`: whether it calls a costly function, would be printed in several
/// places, and is needed in any case. What only one side of a condition needs is not worked out
/// before it: that side is a root of its own.
/// Equal sums of integers and equal reads of parameters are left as they are: NVRTC merges them.
/// `is_known`: of each node whether its text is a name, so that its operands are not printed.
std::vector<bool> repeated_parts(const Expr& expr, std::int32_t root,
                                 const std::vector<bool>& is_known);

}  // namespace lacuna
