// predict_tokens and predict_cells on emulated blocks.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

/// By number in kTokenCases.
const std::vector<emulation::Kernel>& token_kernels();
