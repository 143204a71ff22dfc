// predict_pooled on emulated blocks.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

/// By number in kPooledCases.
const std::vector<emulation::Kernel>& pooled_kernels();
