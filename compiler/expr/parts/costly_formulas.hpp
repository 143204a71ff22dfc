// Which formulas are too long to stand in a kernel once for each score of a lane: 32 or 64 times in
// each of three or four places. They stand in a loop over blocks of keys instead
// (templates/attend/block_loop.cuh), so that a kernel is compiled in a second or two, and has
// registers left.
#pragma once

#include "compiler/expr/expr.hpp"
#include "compiler/expr/parts/score_parts.hpp"

namespace lacuna {

/// How many instructions attention.score takes for each score (instruction_count.hpp), and whether
/// a kernel evaluates it in a loop over blocks of keys.
struct FormulaLengths {
  int of_score = 0;    ///< of core and rest, with one reading of its elements
  int of_indices = 0;  ///< of its elements where each is read by its indices
  bool is_costly() const;
  /// Of the elements that are read by their indices.
  bool has_costly_indices() const;
};
FormulaLengths formula_lengths(const ScoreParts& parts);

/// Instructions of a mask for each pair, and whether it is asked about them in a loop.
int mask_length(const Expr& mask);
bool mask_is_costly(const Expr& mask);

}  // namespace lacuna
