// Prints the functions of Hooks that evaluate the mask: for one pair of query and key, for all keys
// of a query (ranges and conditions), and for a whole tile (is it visible, is it full?).
#pragma once

#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

void write_mask_hooks(CudaWriter& out, const Attend& attend);

}  // namespace lacuna
