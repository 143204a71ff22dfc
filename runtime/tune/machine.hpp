// What this machine offers to run candidates on, and how the tuning database calls it.
#pragma once

#include <optional>
#include <string>

#include "runtime/cuda/driver.hpp"
#include "runtime/tune/config.hpp"

namespace lacuna::tune {

/// A machine with its name in the database; empty: there are no records of it. A measurement tells
/// of the code of one compiler and serves no other.
struct Hardware {
  Machine machine;
  std::string name;
  std::string compiler;  ///< as the first word of a record's compiler: NVRTC, LLVM, interpreter
};

/// The CPU this process runs on; `device_name` as the engine shows it; `compiler` as
/// version_of(HostPlugin) tells it.
Hardware host_hardware(const Target& cpu, const std::string& device_name,
                       const std::string& compiler);
Hardware gpu_hardware(const Driver& driver, int index, const Target& target);

/// The hardware of this machine that has a target's architecture: its CPU, or its first such GPU;
/// without a name if there is none. Opens no context.
Hardware hardware_for(const Target& target, const std::string& cpu_name);

}  // namespace lacuna::tune
