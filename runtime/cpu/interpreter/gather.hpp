// The gather loader in the interpreter: kept columns of a row -> tiles of gathered keys.
#pragma once

#include "runtime/cpu/interpreter/tile.hpp"

namespace lacuna::interpreter {

/// Counts of a report: tiles, or columns.
struct Counts {
  int visible = 0, visited = 0, gated = 0;
};

/// Visits the kept columns of a row (Attend::columns), in ascending order, and marks them in the
/// tile mask.
Counts visit_columns(const Job& job, const WorkTile& row, Worker& worker);

}  // namespace lacuna::interpreter
