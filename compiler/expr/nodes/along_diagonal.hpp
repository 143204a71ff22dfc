// Which parts of a formula depend on a query and a key through the distance q - k alone. Such a
// part has the same value for the pairs (q, k) and (q + 1, k + 1), so a kernel evaluates it once
// for each distance between the queries and the keys of a warp, and not once for each pair.
#pragma once

#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Of each node: does it depend on the distance q - k alone, besides heads, batch entries and
/// lengths? The answer holds for queries and keys up to 15 tokens outside of the launch's as well,
/// for which a kernel may evaluate it.
std::vector<bool> nodes_of_distance(const Expr& formula);

}  // namespace lacuna
