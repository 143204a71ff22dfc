// The generated kernels that this test was built with (extra.cmake).
#pragma once

#include <string>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace lacuna::device {

struct GeneratedKernel {
  std::string spec;  ///< path from the root of the repository
  int head_dim;
  std::string dtype;
  const emulation::Kernel* code;
};

const std::vector<GeneratedKernel>& generated_kernels();

}  // namespace lacuna::device
