// Which formulas are too long to stand in a kernel once for each score of a lane: 32 or 64 times in
// each of three or four places. They stand in a loop over blocks of keys instead
// (templates/attend/block_loop.cuh), so that a kernel is compiled in a second or two, and has
// registers left.
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Instructions of a formula for each score (instruction_count.hpp).
struct FormulaLengths {
  int of_score = 0;    ///< of attention.score: core and rest, with one reading of its elements
  int of_indices = 0;  ///< of its elements where each is read by its indices
};
FormulaLengths formula_lengths(const Expr& score);

/// Of attention.score: does it stand in a loop?
bool formula_is_costly(const Expr& score);
/// Of attention.score: do its elements, where each is read by its indices?
bool indices_are_costly(const Expr& score);

/// Instructions of a mask for each pair, and whether it is asked about them in a loop.
int mask_length(const Expr& mask);
bool mask_is_costly(const Expr& mask);

}  // namespace lacuna
