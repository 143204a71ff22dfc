// predict_reference and predict_token_pairs on emulated blocks.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

/// By number in kPairCases.
struct TokenPairKernels {
  emulation::Kernel reference, pairs;
  emulation::Kernel tokens;  ///< predict_tokens of the same configuration
};
const std::vector<TokenPairKernels>& token_pair_kernels();
