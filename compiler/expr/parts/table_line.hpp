// Tables that a score formula reads along a line: from one key to the next, and from one query to
// the next, the index of bias[2 * k - q] always gains the same. A kernel then reads from one
// address at constant offsets, and once for all scores that share an element. Where the index is of
// q - k or of k alone, shared_parts.hpp goes before.
#pragma once

#include <optional>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// A formula that is one element of a parameter, of whose indices one alone changes with q and k.
struct TableLine {
  int dim = 0;                   ///< the index that changes
  int along_q = 0, along_k = 0;  ///< what it gains from a query, or a key, to the next
  bool operator==(const TableLine&) const = default;
};

/// nullopt: anything else, or an index that may wrap.
std::optional<TableLine> table_line(const Expr& formula);

}  // namespace lacuna
