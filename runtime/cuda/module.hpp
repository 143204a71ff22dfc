// Cubins loaded into the driver and made ready for one device: everything a launch must not do.
#pragma once

#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "runtime/cuda/driver.hpp"

namespace lacuna {

struct LoadedModule {
  std::vector<CUlibrary> libraries;  ///< one for each kernel
  std::vector<CUkernel> kernels;     ///< in the order of LaunchProgram::launches
};

/// Loads the code, a cubin for each launch of the program, forces it onto the device (the driver
/// would otherwise do so in the first launch) and allows each kernel its dynamic shared memory.
/// False with kDriverCall. Modules are never unloaded once used: work on a stream may need them
/// long after the host let go of the kernel.
bool load_module(const Device& device, const std::vector<std::string>& cubins,
                 const LaunchProgram& program, LoadedModule& loaded, Diagnostics& diagnostics);

}  // namespace lacuna
