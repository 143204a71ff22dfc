// The kernel behind lacuna_kernel: one spec for one device, from reading to launching.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/base/arguments.hpp"
#include "runtime/cuda/module.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/publisher.hpp"
#include "runtime/engine/recent_launches.hpp"

namespace lacuna {

inline constexpr std::size_t kMaxArgumentBytes = 4096;  ///< of a kernel's argument block
inline constexpr std::size_t kArgumentAlignment = 64;   ///< of tensor maps in it

/// The native code of a program, made by the plugin; null members where there is no plugin.
struct HostKernel {
  const HostBackend* backend = nullptr;
  void* code = nullptr;

  HostKernel() = default;
  ~HostKernel();
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;
};

/// A plan, and what a launch needs to know of it.
struct LoweredKernel {
  Plan plan;
  LaunchProgram launch;
  LaunchContract contract;
};

/// Immutable after compile_kernel, but for what prepare_kernel publishes through `ready`.
struct KernelState {
  std::shared_ptr<EngineState> engine;
  SpecDocument document;
  BuildOptions options;  ///< of the plan, with what was measured
  LoweredKernel planned;
  std::optional<LoweredKernel> relieved;  ///< in its place, if its kernel spilled; before `ready`
  HostKernel host;                        ///< CPU only
  /// Of a spec with branches: their kernels, which a launch runs one after the other. What is above
  /// is then the first one's plan, the contract of the whole, and the kernels of all.
  std::vector<std::shared_ptr<KernelState>> branches;
  int threads = 0;  ///< CPU only: the engine's, else those measured best; 0: all

  std::mutex prepare_mutex;
  LoadedModule module;                     ///< GPU only; written once, before `ready`
  std::unique_ptr<RecentLaunches> recent;  ///< the same
  std::string compiled_info, ready_info;   ///< JSON, before and after preparation
  std::atomic<bool> ready{false};          ///< on the CPU from the beginning
  /// What a launch runs; before preparation what it is going to run, unless registers spill.
  const LoweredKernel& lowered() const {
    return ready.load(std::memory_order_acquire) && relieved ? *relieved : planned;
  }
  Publisher publisher;  ///< last: its destructor waits for the thread that reads the above
};

/// What a kernel for this target is compiled with: the caller's options, and on a GPU the family
/// that LACUNA_ATTEND_FAMILY asks for.
BuildOptions with_family(BuildOptions options, const Target& target, Diagnostics& diagnostics);

/// Reads, checks, plans and emits; on the CPU also compiles. What the spec leaves open is taken
/// from the tuning database, for problems like `shape`, if it has been measured. Null with
/// diagnostics.
std::shared_ptr<KernelState> compile_kernel(std::shared_ptr<EngineState> engine, SourceText source,
                                            const BuildOptions& options, Diagnostics& diagnostics,
                                            const std::optional<LaunchShape>& shape = {});

/// Compiles for the GPU (or takes from the store), loads, sets attributes. Idempotent, thread-safe.
/// On the CPU nothing is left to do.
bool prepare_kernel(KernelState& kernel, Diagnostics& diagnostics);

/// Checks and enqueues (GPU) or runs (CPU). Allocates and locks nothing unless there is an error.
bool launch_kernel(KernelState& kernel, const lacuna_launch_args& args, Diagnostics& diagnostics);

/// Bytes of workspace, and of a selection's data, for a shape that check_shape accepts. Nothing,
/// with a diagnostic, if the workspace is more than the launch can count.
std::optional<std::size_t> workspace_bytes(const KernelState& kernel, const LaunchShape& shape,
                                           Diagnostics& diagnostics);
std::optional<std::size_t> selection_bytes(const KernelState& kernel, const LaunchShape& shape,
                                           Diagnostics& diagnostics);

}  // namespace lacuna
