// predict_exact_sums and predict_exact_largest on emulated blocks.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

/// By number in kExactCases.
struct ExactKernels {
  emulation::Kernel sums;  ///< none where the caller knows the mass
  emulation::Kernel largest;
};
const std::vector<ExactKernels>& exact_kernels();
