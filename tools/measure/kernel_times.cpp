#include <nlohmann/json.hpp>

#include "tools/measure/measure.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/measure/kernel_times.hpp"

namespace lacuna::tools {
namespace {

std::vector<KernelTimes> kernels_of(const v1::Kernel& kernel) {
  const auto info = nlohmann::json::parse(kernel.info_json());
  std::vector<KernelTimes> kernels;
  for (const auto& name : info.value("stages", nlohmann::json::array()))
    kernels.push_back({name.get<std::string>()});
  return kernels;
}

}  // namespace

std::vector<KernelTimes> time_kernels(const v1::Kernel& kernel,
                                      const std::vector<v1::LaunchArgs>& sets, const Place& place,
                                      double seconds, DeviceErrors& errors) {
  std::vector<KernelTimes> kernels = kernels_of(kernel);
  if (!place.gpu || kernels.size() < 2) return {};
  const DeviceEvents events(place.gpu, kernels.size() + 1, errors.diagnostics);
  errors.check();
  repeat_for(seconds, [&](std::size_t run) {
    // The first launch keeps the GPU busy while the host enqueues the second, which is timed.
    // Otherwise the first kernels would include the time of the host.
    kernel.launch(sets[2 * run % sets.size()]);
    v1::LaunchArgs args = sets[(2 * run + 1) % sets.size()];
    args.stage_events = events.handles();
    kernel.launch(args);
    const std::vector<double> times = events.elapsed_us(errors.diagnostics);
    errors.check();
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i].times_us.push_back(times[i]);
  });
  return kernels;
}

}  // namespace lacuna::tools
