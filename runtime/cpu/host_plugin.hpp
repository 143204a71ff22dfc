// Finds and opens liblacuna_host.so, the CPU compiler. Without it the interpreter serves.
#pragma once

#include <string>

#include "runtime/cpu/host_backend.hpp"

namespace lacuna {

struct HostPlugin {
  const HostBackend* backend = nullptr;  ///< null: interpret; never unloaded
  std::string path;                      ///< of the plugin
  std::string missing;                   ///< one sentence why `backend` is null
};

/// What compiles for the CPU: "LLVM 19.1.7, znver4", or "interpreter" without a plugin.
std::string version_of(const HostPlugin& plugin);

/// LACUNA_HOST_PLUGIN (a path, or "off"), else beside this library or in ../lib of the executable.
HostPlugin load_host_plugin();

}  // namespace lacuna
