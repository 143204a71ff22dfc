// Tables that a score formula reads along a line: from one key to the next the index of bias[q, k]
// or of bias[2 * k - q] always gains the same, and no other index changes. A kernel then reads the
// elements of a row's keys from one address at constant offsets. Where an element is of q - k or of
// k alone, shared_parts.hpp goes before.
#pragma once

#include <optional>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Where an element of a parameter lies, of whose indices one alone changes with k.
struct TableLine {
  int dim = 0;      ///< the index that changes
  int along_k = 0;  ///< what it gains from a key to the next
  bool operator==(const TableLine&) const = default;
};

/// Of a formula that is one element. nullopt: anything else, or an index that may wrap.
std::optional<TableLine> table_line(const Expr& element);

}  // namespace lacuna
