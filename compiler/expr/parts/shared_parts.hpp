// Parts of a score formula that many scores of a warp share: those that depend on the distance q -
// k alone, besides heads, batch entries and lengths, and those that depend on the key alone. Of a
// warp's 16 queries and 64 keys there are 79 distances and 64 keys, so a kernel works such parts
// out once for each of these, and not for each of the 1024 scores.
//
//   bias[q - k], bias[bit_length(abs(q - k))]     all of it, of the distance
//   -level[k]                                     all of it, of the key
//   level[k] + bias[min(abs(q - k), 31)]          both: in `rest`, p + s
//   table[q, min(abs(q - k), 31)]                 none: what is shared is an index, not f32
#pragma once

#include <optional>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// `rest` of a score formula (score_parts.hpp), taken apart.
struct SharedParts {
  Expr of_distance;  ///< f32; empty: there is none, as with of_key
  Expr of_key;
  Expr rest;  ///< in which s and p, which no rest reads, stand for their values
};

/// nullopt: there is no such part, or it is cheaper to work out for each score than to hand on.
std::optional<SharedParts> shared_parts(const Expr& rest);

}  // namespace lacuna
