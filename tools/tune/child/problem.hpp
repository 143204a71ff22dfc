// A problem that a tuning child runs its candidates on: inputs in their place, and kernels
// bound to them.
#pragma once

#include <string>
#include <vector>

#include "runtime/tune/config.hpp"
#include "tools/tune/messages.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/measure/value_source.hpp"
#include "tools/run/kernels.hpp"

namespace lacuna::tools {

/// What every problem of a child has in common.
struct TuneContext {
  TuneTask task;
  SpecDocument document;
  std::vector<ParamInput> params;
  ValueSource values;  ///< of the problem that is timed
  tune::Config usual;  ///< what is used without tuning
};

/// Functions of this file throw v1::Error or DeviceFailure.
struct TuneProblem {
  const TuneContext& context;
  const Place& place;
  Inputs inputs{};
  std::vector<Tensors> sets{};  ///< several on a GPU: together larger than its L2 cache
  Buffer previous_lse{};        ///< for specs that ask for it
  DeviceErrors errors{};
};
/// `values` fit the shape. `sets` 0: as many as rotation takes. `engine` computes what some specs
/// have to be given.
void fill(TuneProblem& problem, const ValueSource& values, const LaunchShape& shape,
          std::size_t sets, const v1::Engine& engine);

/// A kernel with arguments for each set of a problem.
struct BoundKernel {
  v1::Kernel kernel;
  AlignedBuffer workspace;
  Extras extras;
  std::vector<v1::LaunchArgs> args;
};
BoundKernel bind(TuneProblem& problem, const v1::Kernel& kernel);

/// The kernel of a configuration, for problems of this kind, ready to be launched.
v1::Kernel compile_config(const v1::Engine& engine, const TuneProblem& problem,
                          const tune::Config& config);

/// The output of one launch into memory full of NaN: what is not written does not pass for right.
std::vector<float> output_of(TuneProblem& problem, const BoundKernel& kernel);

/// Visited of the visible tiles.
double density_of(TuneProblem& problem, const BoundKernel& kernel);

/// One launch by the steady clock, on a GPU by its events.
double time_launch_us(TuneProblem& problem, const BoundKernel& kernel, std::size_t set);

}  // namespace lacuna::tools
