// select_rows on emulated blocks, and the estimate from the last rows that some configurations
// read.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

struct SelectKernels {
  /// run_thread null: there is none. Their blocks share the keys of a head: key_shares.
  emulation::Kernel sums, estimate;
  emulation::Kernel order_shares, order;  ///< kOrderShares blocks for each head, or none
  emulation::Kernel select;
};

/// By number in kSelectCases.
const std::vector<SelectKernels>& select_kernels();
