// What this machine offers, as plain data: for `lacuna doctor`, and for messages about what is
// missing. Each probe works without the others, and none can fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {

struct DeviceFacts {
  int index = 0;
  std::string name;            ///< "NVIDIA H200"
  int compute_capability = 0;  ///< 90
  std::string target;          ///< "sm_90a"; empty: newer or older than any this build knows
  std::uint64_t memory_bytes = 0;
  int multiprocessors = 0;
};

struct NvrtcProbe {
  std::optional<NvrtcInfo> info;
  std::string missing;  ///< one sentence; empty if found
};

struct DriverProbe {
  int cuda_version = 0;  ///< 13000; 0: no driver
  std::string missing;   ///< one sentence; empty if a driver and a device were found
  std::vector<DeviceFacts> devices;
};

struct HostProbe {
  std::string path;     ///< of liblacuna_host.so
  std::string version;  ///< "LLVM 19.1.7, znver4"
  std::string missing;  ///< one sentence; empty if loaded
};

struct CacheProbe {
  std::string directory;  ///< empty: memory only
  bool on_disk = false;
  std::uint64_t entries = 0, bytes = 0, damaged = 0;
  std::vector<std::string> warnings;
};

struct VariableProbe {
  std::string name, doc;
  std::optional<std::string> value;  ///< nothing: not set
};

struct EnvironmentReport {
  std::string version;  ///< of this library
  NvrtcProbe nvrtc;
  DriverProbe driver;
  HostProbe host;
  CacheProbe cache;
  std::vector<VariableProbe> variables;
};

EnvironmentReport probe_environment();

NvrtcProbe probe_nvrtc(int max_major);
DriverProbe probe_driver();
HostProbe probe_host();
CacheProbe probe_cache();

}  // namespace lacuna
