// select_rows on emulated blocks, and the estimate from the last rows that some configurations
// read.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

struct SelectKernels {
  emulation::Kernel estimate;  ///< run_thread null: there is none
  emulation::Kernel select;
};

/// By number in kSelectCases.
const std::vector<SelectKernels>& select_kernels();
