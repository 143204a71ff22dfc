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

/// Checks that memory of the caller's was passed, is large enough and aligned. `subject`:
/// "workspace" or "selection.data".
bool check_memory(const KernelState& kernel, const std::string& subject, const void* data,
                  std::size_t bytes, std::size_t needed, Diagnostics& diagnostics);

/// `needed`: bytes of its data.
bool check_selection(const KernelState& kernel, const lacuna_selection& selection, void* stream,
                     std::size_t needed, Diagnostics& diagnostics);

/// Does the selection still hold the tiles that an earlier launch decided on?
bool is_decided(const KernelState& kernel, const lacuna_selection* selection);

/// After a launch; nothing without a selection.
void count_launch(const KernelState& kernel, lacuna_selection* selection);

/// The branches that the caller names are the spec's, each once.
bool check_branch_names(const KernelState& kernel, const lacuna_launch_args& args,
                        Diagnostics& diagnostics);

}  // namespace lacuna
