// Plan -> kernel.cu and LaunchProgram: the last stops of the compiler, text and plain values.
#pragma once

#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/emit/launch_program.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

/// What one kernel adds to the head of its source: the include of its template, its Config, its
/// extern "C" entry.
struct CudaKernel {
  std::string name;   ///< "prepare_q", as in KernelLaunch
  std::string entry;  ///< "lacuna_prepare_q_sparge"
  std::string text;
};

/// A generated translation unit, in parts, of which the head and any one kernel compile by
/// themselves. `#line` directives lead NVRTC's errors back to the spec.
struct CudaSource {
  std::string head;                  ///< provenance, and what the kernels share: Args and Hooks
  std::vector<CudaKernel> kernels;   ///< in launch order
  std::vector<std::string> options;  ///< NVRTC options that affect the code, in order
};

/// kernel.cu: all of it, as people read it.
std::string source_text(const CudaSource& source);

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
