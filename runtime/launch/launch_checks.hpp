// Checks what a launch is given besides tensors and memory against its kernel and its device.
#pragma once

#include "runtime/engine/kernel.hpp"

namespace lacuna {

/// An error about a launch of a kernel, which its text begins with.
Diagnostic launch_error(const KernelState& kernel, Code code, const std::string& text);

/// One event before the kernels and one after each; the CPU has no events.
bool check_events(const KernelState& kernel, const lacuna_launch_args& args,
                  Diagnostics& diagnostics);

/// Kernels need a multiprocessor; the CPU has none.
bool check_sm_margin(const KernelState& kernel, std::int64_t sm_margin, Diagnostics& diagnostics);

}  // namespace lacuna
