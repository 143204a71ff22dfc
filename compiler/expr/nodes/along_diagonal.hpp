// What of a formula stays the same from a pair (q, k) to the pair (q + 1, k + 1), whose distance is
// the same. A kernel works such parts out once for each distance of a warp's queries and keys.
#pragma once

#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Of each node: does it depend on the distance q - k alone, besides heads, batch entries and
/// lengths? Also for queries and keys up to 15 tokens from those of the launch.
std::vector<bool> nodes_of_distance(const Expr& formula);

}  // namespace lacuna
