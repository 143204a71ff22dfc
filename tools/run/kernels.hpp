// Engines, kernels and reporting launches, as `run`, `viz` and `bench` use them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/common/session.hpp"
#include "tools/run/dense_twin.hpp"
#include "tools/run/result.hpp"
#include "tools/run/tensors.hpp"

namespace lacuna::tools {

/// The engine; what it misses and what serves instead goes to the reader.
v1::Engine create_engine(const LaunchOptions& options, const Session& session);

/// A kernel for the head dim and dtype of the inputs, ready to be launched.
v1::Kernel prepare_spec(const v1::Engine& engine, const std::string& text, const std::string& path,
                        const Inputs& inputs);

/// Dense attention that a spec is compared with, ready to be launched.
struct DenseKernel {
  v1::Kernel kernel;
  std::vector<std::string> params;  ///< of the spec's that it reads too
  AlignedBuffer workspace;          ///< for the shape that it was prepared for
};
/// Of the spec's one attend, or what of a spec with branches is one (dense_twin).
DenseKernel prepare_dense(const v1::Engine& engine, const SpecDocument& document,
                          const Inputs& inputs, const Place& place, DeviceErrors& errors);

/// Of another twin of the document.
DenseKernel prepare_twin(const v1::Engine& engine, const DenseTwin& twin,
                         const SpecDocument& document, const Inputs& inputs, const Place& place,
                         DeviceErrors& errors);

/// Arguments of a launch of either. `lse`, unless null, becomes memory for the row LSE, f32 [batch,
/// heads, n_q], and has to stay where it is.
v1::LaunchArgs dense_arguments(DenseKernel& dense, const Inputs& inputs, Tensors& tensors,
                               const Place& place, DeviceErrors& errors, Buffer* lse = nullptr);

/// Does the estimate ask for the row LSE of an earlier call?
bool wants_previous_lse(const SpecDocument& document);

/// A launch that also reports which tiles it visited and gated, into `result`, whose tile sizes are
/// known.
void launch_with_report(const v1::Kernel& kernel, v1::LaunchArgs args, const Place& place,
                        const Inputs& inputs, RunResult& result, DeviceErrors& errors);

/// The same of a spec with branches, in `result.branches`.
void launch_with_branch_reports(const v1::Kernel& kernel, v1::LaunchArgs args, const Place& place,
                                const SpecDocument& document, const Inputs& inputs,
                                RunResult& result, DeviceErrors& errors);

/// Runs `body`; what the library or the driver throws in it becomes a report.
void guard_device(Session& session, const std::function<void()>& body);

}  // namespace lacuna::tools
