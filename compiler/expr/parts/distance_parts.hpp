// Parts of a score formula that depend on the distance q - k alone, besides heads, batch entries
// and lengths: of a warp's 16 queries and 64 keys there are 79 distances, so a kernel works them
// out once for each of these, and not for each of the 1024 scores.
//
//   bias[q - k], bias[bit_length(abs(q - k))]     all of it
//   weight[k] + bias[min(abs(q - k), 31)]         the second addend: s of `rest`, weight[k] + s
//   table[q, min(abs(q - k), 31)]                 no f32 part
#pragma once

#include <optional>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// `rest` of a score formula (score_parts.hpp), taken apart.
struct DistanceParts {
  Expr of_distance;  ///< f32
  Expr rest;         ///< in which the variable s, which no rest reads, stands for its value
};

/// nullopt: there is no such part, or it is cheaper to work out for each score than to hand on.
std::optional<DistanceParts> split_distance(const Expr& rest);

}  // namespace lacuna
