// Kernels for batches of sequences, and launches of them, on the device under test.
#pragma once

#include <string>
#include <vector>

#include "tests/numerics/harness/sequences.hpp"

namespace lacuna::numerics {

/// Compiles the kernels of these batches, which kernel_for then finds.
void compile_ahead(const std::vector<SequenceCase>& cases);

/// That of a batch; one with an error in it, if it could not be compiled.
CompiledKernel kernel_for(const SequenceCase& c);

/// Memory for a launch; "" or what is wrong.
std::string provide(SequenceBatch& batch, lacuna_kernel* kernel);

/// Launches and checks; "" or what is wrong.
std::string launch(SequenceBatch& batch);

}  // namespace lacuna::numerics
