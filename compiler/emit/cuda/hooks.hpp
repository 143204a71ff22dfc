// The Hooks of a generated kernel: the expressions of the spec, printed as device functions that
// the templates call.
#pragma once

#include "compiler/emit/cuda/cuda_writer.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

void write_hooks(CudaWriter& out, const Plan& plan);

}  // namespace lacuna
