#include "runtime/tune/machine.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <thread>

#include "cache/tuning/tuning.hpp"
#include "runtime/cpu/host_plugin.hpp"
#include "runtime/tune/bucket.hpp"

namespace lacuna::tune {
namespace {

/// The number of the first line of /proc/cpuinfo with this name; 0: there is none.
int cpuinfo_number(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    int value = 0;
    std::from_chars(line.data() + colon + 2, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

/// Cores with arithmetic units of their own among `threads` hardware threads.
int count_cores(int threads) {
  const int siblings = cpuinfo_number("siblings"), cores = cpuinfo_number("cpu cores");
  if (siblings < 1 || cores < 1) return threads;
  return std::clamp(threads * cores / siblings, 1, threads);
}

}  // namespace

Hardware host_hardware(const Target& cpu, const std::string& device_name,
                       const std::string& compiler) {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {{cpu, threads, count_cores(threads)},
          hardware_name(device_name, threads),
          std::string(cache::compiler_kind(compiler))};
}

Hardware gpu_hardware(const Driver& driver, int index, const Target& target) {
  const int processors =
      std::max(1, device_attribute(driver, index, kAttributeMultiprocessorCount));
  return {{target, processors, processors},
          hardware_name(device_name(driver, index), processors),
          "NVRTC"};
}

Hardware hardware_for(const Target& target, const std::string& cpu_name) {
  if (target.kind == TargetKind::kCpu)
    return host_hardware(target, cpu_name, version_of(load_host_plugin()));
  Diagnostics missing;
  const auto driver = load_driver(missing);
  const int devices = driver != nullptr ? device_count(*driver) : 0;
  for (int index = 0; index < devices; ++index) {
    if (compute_capability(*driver, index) == target.compute_capability)
      return gpu_hardware(*driver, index, target);
  }
  Hardware none;
  none.machine.target = target;
  return none;
}

}  // namespace lacuna::tune
