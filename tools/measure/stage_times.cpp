#include <nlohmann/json.hpp>

#include "tools/measure/measure.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/measure/stage_times.hpp"

namespace lacuna::tools {
namespace {

std::vector<StageTimes> stages_of(const v1::Kernel& kernel) {
  const auto info = nlohmann::json::parse(kernel.info_json());
  std::vector<StageTimes> stages;
  for (const auto& name : info.value("stages", nlohmann::json::array()))
    stages.push_back({name.get<std::string>()});
  return stages;
}

}  // namespace

std::vector<StageTimes> time_stages(const v1::Kernel& kernel,
                                    const std::vector<v1::LaunchArgs>& sets, const Place& place,
                                    double seconds, DeviceErrors& errors) {
  std::vector<StageTimes> stages = stages_of(kernel);
  if (!place.gpu || stages.size() < 2) return {};
  const DeviceEvents events(place.gpu, stages.size() + 1, errors.diagnostics);
  errors.check();
  repeat_for(seconds, [&](std::size_t run) {
    // The first launch keeps the GPU busy while the host enqueues the second, which is timed.
    // Otherwise the first stages would include the time of the host.
    kernel.launch(sets[2 * run % sets.size()]);
    v1::LaunchArgs args = sets[(2 * run + 1) % sets.size()];
    args.stage_events = events.handles();
    kernel.launch(args);
    const std::vector<double> times = events.elapsed_us(errors.diagnostics);
    errors.check();
    for (std::size_t i = 0; i < stages.size(); ++i) stages[i].times_us.push_back(times[i]);
  });
  return stages;
}

}  // namespace lacuna::tools
