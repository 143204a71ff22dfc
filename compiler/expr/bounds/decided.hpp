// Conditions that are the same whatever their variables are: most often a slip of the author's.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler/expr/bounds/ranges.hpp"

namespace lacuna {

/// What is known of the things that a formula reads.
struct ReadRanges {
  std::array<ValueRange, kVariableCount> variables;
  std::vector<ValueRange> parameters;  ///< in the order of Expr::parameters

  /// What the language says of its variables; parameters hold anything of their type.
  explicit ReadRanges(const Expr& expr);
};

/// True or false if the condition is that everywhere, nothing if it is not or nobody can tell.
///
/// A comparison of integers asks on which side of a number a sum of terms lies, one of f32 which of
/// two numbers is larger. Those that ask about one sum are decided together, so that `k <= q or q <
/// k` is known to hold; different sums count as independent, except that a tile begins before it
/// ends, and a token has a number below the length.
std::optional<bool> decided(const Expr& condition, const ReadRanges& ranges);

}  // namespace lacuna
