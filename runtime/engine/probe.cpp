#include "runtime/engine/probe.hpp"

#include "cache/store.hpp"
#include "compiler/target/target.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/cpu/host_plugin.hpp"
#include "runtime/cuda/driver.hpp"

namespace lacuna {
namespace {

DeviceFacts device_facts(const Driver& driver, int index) {
  DeviceFacts facts;
  facts.index = index;
  facts.name = device_name(driver, index);
  facts.compute_capability = compute_capability(driver, index);
  const auto target = target_for_compute_capability(facts.compute_capability);
  if (target) facts.target = target->name;
  facts.memory_bytes = device_memory_bytes(driver, index);
  facts.multiprocessors = device_attribute(driver, index, kAttributeMultiprocessorCount);
  return facts;
}

}  // namespace

NvrtcProbe probe_nvrtc(int max_major) {
  NvrtcProbe probe;
  Diagnostics diagnostics;
  if (const auto nvrtc = load_nvrtc(max_major, diagnostics)) {
    probe.info = info(*nvrtc);
  } else {
    probe.missing = diagnostics.items.front().message;
  }
  return probe;
}

DriverProbe probe_driver() {
  DriverProbe probe;
  Diagnostics diagnostics;
  const auto driver = load_driver(diagnostics);
  if (driver == nullptr) {
    probe.missing = diagnostics.items.front().message;
    return probe;
  }
  probe.cuda_version = driver->cuda_version;
  const int count = device_count(*driver);
  for (int i = 0; i < count; ++i) probe.devices.push_back(device_facts(*driver, i));
  if (count == 0) probe.missing = "no GPU: the NVIDIA driver is installed but finds no device";
  return probe;
}

HostProbe probe_host() {
  const HostPlugin plugin = load_host_plugin();
  HostProbe probe{plugin.path, "", plugin.missing};
  if (plugin.backend != nullptr) probe.version = plugin.backend->version();
  return probe;
}

CacheProbe probe_cache() {
  CacheProbe probe;
  cache::StoreOptions options;
  options.directory = cache::choose_directory(system_variable);
  options.warn = [&probe](const std::string& message) { probe.warnings.push_back(message); };
  const cache::Store store(std::move(options));
  probe.on_disk = store.on_disk();
  if (probe.on_disk) probe.directory = store.directory();
  for (const cache::EntryInfo& entry : store.list()) {
    ++probe.entries;
    probe.bytes += entry.bytes;
    probe.damaged += entry.intact ? 0 : 1;
  }
  return probe;
}

EnvironmentReport probe_environment() {
  EnvironmentReport report;
  report.version = LACUNA_VERSION;
  report.driver = probe_driver();
  report.nvrtc = probe_nvrtc(report.driver.cuda_version / 1000);
  report.host = probe_host();
  report.cache = probe_cache();
  for (const EnvironmentEntry& entry : environment_table()) {
    const char* value = system_variable(entry.name);
    report.variables.push_back({entry.name, entry.doc, std::nullopt});
    if (value != nullptr) report.variables.back().value = value;
  }
  return report;
}

}  // namespace lacuna
