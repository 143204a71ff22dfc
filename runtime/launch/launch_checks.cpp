#include "runtime/launch/launch_checks.hpp"

#include <algorithm>

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

}  // namespace lacuna
