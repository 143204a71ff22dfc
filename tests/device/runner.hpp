// Runs a generated kernel on emulated blocks, launched as the runtime would: LaunchProgram, checked
// arguments, argument block. In place of the driver stands a loop over the blocks of the grid.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/emit/launch_program.hpp"
#include "runtime/arguments.hpp"
#include "tests/device/kernels.hpp"
#include "tests/numerics/harness.hpp"

namespace lacuna::device {

/// A generated kernel and what the compiler says about launching it.
struct Subject {
  std::string name;  ///< "skip_softmax_d128_bf16"
  std::string spec;  ///< "skip-softmax"
  numerics::DType dtype;
  int head_dim = 0;
  LaunchContract contract;
  LaunchProgram launch;
  const emulation::Kernel* code = nullptr;
};

const std::vector<Subject>& subjects();

/// A problem for a subject, with the oracle twin of its spec.
struct Problem {
  numerics::Case shape;
  numerics::Variant variant;
};
Problem make_problem(const Subject& subject, numerics::Case shape, std::uint32_t seed);

/// One launch with poisoned outputs; `error` also says what the emulation found.
numerics::Reported run(const Subject& subject, const Problem& problem,
                       const emulation::Schedule& schedule);

/// The same with changed launch arguments.
numerics::Reported run(const Subject& subject, numerics::Binding& binding,
                       const emulation::Schedule& schedule);

}  // namespace lacuna::device
