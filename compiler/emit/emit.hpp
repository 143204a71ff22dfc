// Plan -> kernel.cu and LaunchProgram: the last stops of the compiler, text and plain values.
#pragma once

#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/emit/launch_program.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

/// A generated translation unit: provenance, includes, a Config and an extern "C" entry for each
/// kernel, and what they share, Args and Hooks. `#line` directives lead NVRTC's errors back to the
/// spec.
struct CudaSource {
  std::string text;
  std::vector<std::string> options;  ///< NVRTC options that affect the code, in order
  std::vector<std::string> entries;  ///< names of the extern "C" kernels, in launch order
};

/// For plans of CUDA targets without errors.
CudaSource emit_cuda(const Plan& plan, const SpecDocument& document);

/// For any plan; for the CPU it holds the values of attend and nothing to launch.
LaunchProgram emit_launch_program(const Plan& plan);

/// The device headers embedded in the library (templates/**), name as written in #include.
struct EmbeddedHeader {
  const char* name;
  const char* text;
};
const std::vector<EmbeddedHeader>& embedded_headers();

}  // namespace lacuna
