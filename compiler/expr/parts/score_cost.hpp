// What a score formula leaves for each score, once a row has what stays the same along it
// (score_parts.hpp): the plan shows it.
#pragma once

#include <string>

#include "compiler/expr/parts/score_parts.hpp"

namespace lacuna {

/// Operations for each score, by kind, as the formula has them: before the CUDA compiler joins any.
struct ScoreCost {
  int multiply_adds = 0;
  int float_operations = 0;    ///< other than the kinds around this one
  int special_functions = 0;   ///< exp, tanh, ..., and divisions
  int loads = 0;               ///< elements of parameters
  int integer_operations = 0;  ///< conversions included
  int decisions = 0;           ///< comparisons, what joins them, selects
  int shuffle_tenths = 0;      ///< tenths of a value that another lane of the warp has worked out
  bool operator==(const ScoreCost&) const = default;
};

/// Of the nodes that change along a row.
ScoreCost cost_along_row(const Expr& part);

/// What each score takes, and each distance and key of a warp's.
struct ScoreCosts {
  ScoreCost of_score, of_distance, of_key;
};

/// The last multiply-add, score * factor + more, is among them. A table read along a line
/// (table_line.hpp) is one load. `shares`: a warp works out once what its scores share
/// (shared_parts.hpp).
ScoreCosts score_costs(const ScoreParts& parts, bool shares = true);

/// "2 FFMA, 1 load for each score", and what each distance and key takes.
std::string print_score_costs(const ScoreCosts& costs);

/// What the operations are for: "factor * core + affine in k + rest", without what is absent.
std::string print_score_form(const ScoreParts& parts, bool shares = true);

}  // namespace lacuna
