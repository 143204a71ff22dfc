// The hooks of a score formula: as a whole, and taken apart by what its parts depend on.
#pragma once

#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/expr/expr.hpp"

namespace lacuna {

/// `score`: empty, where scores stay as they are.
void write_score_hooks(CudaWriter& out, const Expr& score);

}  // namespace lacuna
