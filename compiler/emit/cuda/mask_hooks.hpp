// The hooks of a mask: what it says of a pair, of a row's keys and of whole tiles.
#pragma once

#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

void write_mask_hooks(CudaWriter& out, const Attend& attend);

}  // namespace lacuna
