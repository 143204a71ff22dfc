// Operations that a part of a formula takes, by kind.
#pragma once

#include "compiler/expr/expr.hpp"

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

/// Of the nodes that change with s or k, or with what stands for a part that does.
ScoreCost cost_along_row(const Expr& part);
/// The same, counted with others.
void add_along_row(ScoreCost& cost, const Expr& part);

}  // namespace lacuna
