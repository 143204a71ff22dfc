// One run of a compiled kernel on Inputs: storage in the dtype, poisoned outputs, results widened.
#pragma once

#include <string>

#include "tests/host/plugin.hpp"
#include "tests/host/reference.hpp"

namespace lacuna::host_tests {

struct RunOptions {
  bool token_major = false;  ///< [b, n, h, d + 8] in memory; else contiguous [b, h, n, d]
  int threads = 2;
};

struct RunResult {
  Outputs outputs;
  std::vector<std::uint8_t> o_bytes;  ///< as written, with the bytes between rows
  bool padding_touched = false;       ///< bytes between the rows of a strided o were written
  std::string error;
};

RunResult run(const Program& program, const CompiledKernel& kernel, const Inputs& inputs,
              const RunOptions& options = {});

}  // namespace lacuna::host_tests
