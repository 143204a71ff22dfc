#include "runtime/cpu/host_plugin.hpp"

#include <filesystem>
#include <vector>

#include "runtime/base/dynamic_library.hpp"
#include "runtime/base/environment.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "liblacuna_host.so";

HostPlugin open_plugin(const std::string& path) {
  using Entry = const HostBackend* (*)(std::uint32_t);
  HostPlugin plugin{nullptr, path, ""};
  const DynamicLibrary library = open_library(path);
  if (!library) {
    plugin.missing = "no CPU compiler: " + library.error;
    return plugin;
  }
  const auto entry = reinterpret_cast<Entry>(library.symbol("lacuna_host_backend"));
  if (entry == nullptr) {
    plugin.missing = "no CPU compiler: " + path + " is not a plugin of lacuna";
    return plugin;
  }
  plugin.backend = entry(kHostBackendAbi);
  if (plugin.backend == nullptr) {
    plugin.missing = "no CPU compiler: " + path + " belongs to another version of lacuna";
  }
  return plugin;
}

}  // namespace

std::string version_of(const HostPlugin& plugin) {
  return plugin.backend != nullptr ? plugin.backend->version() : "interpreter";
}

HostPlugin load_host_plugin() {
  const std::string named = environment(EnvironmentVariable::kHostPlugin);
  if (named == "off") return {nullptr, "", "no CPU compiler: LACUNA_HOST_PLUGIN is off"};
  if (!named.empty()) return open_plugin(named);
  const fs::path own = own_directory();
  if (own.empty()) return {nullptr, "", "no CPU compiler: this library does not know where it is"};
  for (const fs::path& directory : {own, own.parent_path() / "lib"}) {
    const fs::path candidate = directory / kFileName;
    std::error_code failed;
    if (fs::exists(candidate, failed)) return open_plugin(candidate.string());
  }
  return {nullptr, "",
          std::string("no CPU compiler: ") + kFileName + " was not found in " + own.string()};
}

}  // namespace lacuna
