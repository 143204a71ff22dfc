// Whether the assembler kept to the registers that a plan gave its kernels.
#pragma once

#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {

/// The wgmma family is planned to the last register: a build whose assembler says that it did
/// otherwise (find_ptxas_complaints), or that attend needs local memory, is an error (kAssembly)
/// rather than a slow kernel, unless another plan takes its place. Other plans are always accepted.
bool check_assembly(const Plan& plan, const Compilation& compilation, Diagnostics& diagnostics);

/// What check_assembly objects to, and spills of attend in the mma family.
std::vector<std::string> assembly_complaints(const Plan& plan, const Compilation& compilation);

}  // namespace lacuna
