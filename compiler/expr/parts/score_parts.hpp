// A score formula, taken apart by what it changes with, so that a kernel computes what depends on
// the query alone once for a row, and leaves one multiply-add for each score where that is all:
//
//   score = factor * core + offset + rest
//
// factor: depends on the query alone. core: everything that reads s. offset: affine in k; from one
// key to the next it grows by `slope`, which depends on the query alone. rest: terms that are none
// of these. Where no such term is left, and the core reads s only as part of one sum s + a, then a
// is the rest, and it is added inside the core:
//
//   score = factor * core(s + rest) + offset
//
//   s - slope[h] * (q - k)       factor 1, core s, offset -slope[h] * (q - k), slope slope[h]
//   cap * tanh(s / cap)          factor cap, core tanh(s * (1 / cap))
//   2 * s + bias[q - k]          factor 2, core s, rest bias[q - k]
//   max(s + bias[q - k], 0)      core max(s, 0), rest bias[q - k], inside
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

struct ScoreParts {
  Expr factor;                  ///< empty: 1
  Expr core;                    ///< empty: s itself
  Expr offset;                  ///< empty: 0, and so is the slope
  Expr slope;                   ///< empty: 0
  Expr rest;                    ///< empty: 0
  bool rest_is_inside = false;  ///< added to s, not to the score
};

/// The parts of a formula of Site::kScore, each folded; their sum differs from it by rounding
/// alone. A division by what changes with neither s nor k is a multiplication with its reciprocal
/// there.
ScoreParts split_score(const Expr& score);

}  // namespace lacuna
