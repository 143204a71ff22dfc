// The hooks of a mask: the mask of a pair, the bounds of a tile, and the parts by which a row's
// keys are found (compiler/expr/parts/mask_parts.hpp).
#pragma once

#include "compiler/emit/cuda_writer.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

void write_mask_hooks(CudaWriter& out, const Attend& attend);

}  // namespace lacuna
