// Tables that a score formula reads along a line: bias[k + 8] has the next element for the next
// key, and the same one for the next query. A kernel then reads from one address at constant
// distances, and once for all scores that share an element. Lines along q - k belong to
// distance_parts.hpp.
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
