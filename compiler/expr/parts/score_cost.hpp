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
  bool operator==(const ScoreCost&) const = default;
};

/// The last multiply-add, score * factor + more, is among them. A table read along a line
/// (table_line.hpp) is one load.
ScoreCost score_cost(const ScoreParts& parts);

/// "2 FFMA, 1 load"
std::string print_score_cost(const ScoreCost& cost);

/// What the operations are for: "factor * core + affine in k + rest", without what is absent.
std::string print_score_form(const ScoreParts& parts);

}  // namespace lacuna
