// The generated kernels that this test was built with (extra.cmake).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace lacuna::device {

/// All kernels of one spec.
struct GeneratedSpec {
  std::string spec;  ///< path from the root of the repository
  int head_dim;
  std::string dtype;
  std::string arch;  ///< whose family of attend it is: sm_100a, mma; sm_90a, wgmma
  const std::span<const emulation::NamedKernel>* kernels;
  std::string batch;   ///< "uniform", "sequences", "pages"
  std::string kv;      ///< "same", "e4m3"
  std::string branch;  ///< of a spec with branches; else empty
};

const std::vector<GeneratedSpec>& generated_specs();

}  // namespace lacuna::device
