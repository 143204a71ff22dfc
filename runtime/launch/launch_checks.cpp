#include "runtime/launch/launch_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "runtime/launch/branches.hpp"

namespace lacuna {

Diagnostic launch_error(const KernelState& kernel, Code code, const std::string& text) {
  Diagnostic d;
  d.code = code;
  d.message = "kernel " + kernel.lowered().contract.kernel + text;
  return d;
}

bool check_events(const KernelState& kernel, const lacuna_launch_args& args,
                  Diagnostics& diagnostics) {
  if (args.stage_events == nullptr && args.stage_events_count == 0) return true;
  const auto refuse = [&](const std::string& text) {
    diagnostics.add(launch_error(kernel, Code::kCallArgument, ", " + text));
    return false;
  };
  const std::size_t count = args.stage_events_count,
                    kernels = kernel.lowered().launch.launches.size();
  if (kernel.engine->gpu == nullptr)
    return refuse("stage_events: expected none on the CPU, got " + std::to_string(count));
  if (args.stage_events == nullptr || count != kernels + 1) {
    return refuse("stage_events: expected " + std::to_string(kernels + 1) + " events for " +
                  std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels") + ", got " +
                  (args.stage_events == nullptr ? "null" : std::to_string(count)));
  }
  bool complete = true;
  for (std::size_t i = 0; i <= kernels; ++i) {
    if (args.stage_events[i] != nullptr) continue;
    complete = refuse("stage_events[" + std::to_string(i) + "]: expected an event, got null");
  }
  return complete;
}

bool check_sm_margin(const KernelState& kernel, std::int64_t sm_margin, Diagnostics& diagnostics) {
  const auto& gpu = kernel.engine->gpu;
  const std::int64_t most = gpu != nullptr ? std::max(gpu->sm_count - 1, 0) : 0;
  if (sm_margin >= 0 && sm_margin <= most) return true;
  const std::string expected = gpu == nullptr ? "0 on the CPU" : "0 to " + std::to_string(most);
  diagnostics.add(
      launch_error(kernel, Code::kCallArgument,
                   ", sm_margin: expected " + expected + ", got " + std::to_string(sm_margin)));
  return false;
}

bool check_memory(const KernelState& kernel, const std::string& subject, const void* data,
                  std::size_t bytes, std::size_t needed, Diagnostics& diagnostics) {
  if (needed == 0) return true;
  const std::uintptr_t rest = reinterpret_cast<std::uintptr_t>(data) % kWorkspaceUnitBytes;
  if (data != nullptr && rest == 0 && bytes >= needed) return true;
  const auto refuse = [&](const std::string& text) {
    diagnostics.add(
        launch_error(kernel, Code::kWorkspaceArgument, ", " + subject + ": expected " + text));
  };
  if (data == nullptr) {
    refuse(std::to_string(needed) + " bytes, got null");
    return false;
  }
  if (bytes < needed) refuse(std::to_string(needed) + " bytes, got " + std::to_string(bytes));
  if (rest != 0) {
    refuse("an address aligned to " + std::to_string(kWorkspaceUnitBytes) + " bytes, got one " +
           std::to_string(rest) + " bytes past that");
  }
  return false;
}

bool check_selection(const KernelState& kernel, const lacuna_selection& selection, void* stream,
                     std::size_t needed, Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& text) {
    diagnostics.add(launch_error(kernel, Code::kCallArgument, ", " + text));
    return false;
  };
  if (!kernel.branches.empty())
    return refuse(
        "selection: expected null, got one: each branch decides for itself, and lacuna_branch_args "
        "has a selection for each");
  if (!kernel.lowered().contract.keeps_selection) {
    return refuse("selection: expected null, got one: the spec has no \"predictor\"");
  }
  if (selection.struct_size < sizeof(selection)) {
    return refuse("selection.struct_size: expected " + std::to_string(sizeof(selection)) +
                  ", got " + std::to_string(selection.struct_size));
  }
  if (selection.calls < 0) {
    return refuse("selection.calls: expected 0 or more, got " + std::to_string(selection.calls));
  }
  const auto& gpu = kernel.engine->gpu;
  if (kernel.lowered().launch.reuse > 1 && gpu != nullptr && is_capturing(*gpu->driver, stream)) {
    return refuse(
        "selection: expected null on a stream that is being captured, got one: whether a launch "
        "decides is counted here, so each replay would do what this one does");
  }
  return check_memory(kernel, "selection.data", selection.data, selection.bytes, needed,
                      diagnostics);
}

bool is_decided(const KernelState& kernel, const lacuna_selection* selection) {
  return selection != nullptr && selection->calls % kernel.lowered().launch.reuse != 0;
}

void count_launch(const KernelState& kernel, lacuna_selection* selection) {
  if (selection != nullptr)
    selection->calls = (selection->calls + 1) % kernel.lowered().launch.reuse;
}

bool check_branch_names(const KernelState& kernel, const lacuna_launch_args& args,
                        Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& text) {
    diagnostics.add(launch_error(kernel, Code::kCallArgument, ", branches: " + text));
    return false;
  };
  if (kernel.branches.empty() && args.branches_count > 0)
    return refuse("expected none, got " + std::to_string(args.branches_count) +
                  ": the spec has no branches");
  const auto all_names = [&] {
    std::string names;
    for (const auto& branch : kernel.branches)
      names += (names.empty() ? "" : ", ") + branch->document.spec.branch.name;
    return names;
  };
  bool fits = true;
  for (std::size_t n = 0; n < args.branches_count; ++n) {
    const std::string_view name = args.branches[n]->name;
    const bool is_known = std::ranges::any_of(kernel.branches, [&name](const auto& branch) {
      return branch->document.spec.branch.name == name;
    });
    if (!is_known) fits = refuse("expected some of " + all_names() + ", got " + std::string(name));
    if (args_of_branch(args, name) != args.branches[n])
      fits = refuse(std::string(name) + " is passed twice");
  }
  return fits;
}

}  // namespace lacuna
