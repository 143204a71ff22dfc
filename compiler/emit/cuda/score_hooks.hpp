// Prints the functions of Hooks that evaluate the score formula: one for the whole formula, and one
// for each of its parts (compiler/expr/parts/score_parts.hpp).
#pragma once

#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/expr/expr.hpp"

namespace lacuna {

/// `score`: empty, where scores stay as they are.
void write_score_hooks(CudaWriter& out, const Expr& score);

}  // namespace lacuna
