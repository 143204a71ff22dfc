#include "runtime/cuda/module.hpp"

namespace lacuna {
namespace {

bool load_kernel(const Device& device, const std::string& cubin, const KernelLaunch& launch,
                 LoadedModule& module, Diagnostics& diagnostics) {
  const Driver& driver = *device.driver;
  CUlibrary library = nullptr;
  if (!check_driver(driver,
                    driver.cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr,
                                             nullptr, 0),
                    "loading compiled code", diagnostics)) {
    return false;
  }
  module.libraries.push_back(library);
  CUkernel& kernel = module.kernels.emplace_back();
  CUfunction function = nullptr;
  if (!check_driver(driver, driver.cuLibraryGetKernel(&kernel, library, launch.entry.c_str()),
                    "finding a kernel in its code", diagnostics) ||
      !check_driver(driver, driver.cuKernelGetFunction(&function, kernel),
                    "placing a kernel on the device", diagnostics)) {
    return false;
  }
  if (driver.cuFuncLoad != nullptr &&
      !check_driver(driver, driver.cuFuncLoad(function), "loading a kernel", diagnostics)) {
    return false;
  }
  return check_driver(driver,
                      driver.cuKernelSetAttribute(kFunctionAttributeMaxDynamicSharedBytes,
                                                  launch.smem_bytes, kernel, device.handle),
                      "allowing a kernel its shared memory", diagnostics);
}

}  // namespace

bool load_module(const Device& device, const std::vector<std::string>& cubins,
                 const LaunchProgram& program, LoadedModule& loaded, Diagnostics& diagnostics) {
  const Driver& driver = *device.driver;
  const ContextScope scope(device);
  if (!check_driver(driver, scope.result(), "entering the device's context", diagnostics)) {
    return false;
  }
  LoadedModule module;
  for (std::size_t n = 0; n < program.launches.size(); ++n) {
    if (!load_kernel(device, cubins[n], program.launches[n], module, diagnostics)) {
      for (CUlibrary library : module.libraries) driver.cuLibraryUnload(library);
      return false;
    }
  }
  loaded = std::move(module);
  return true;
}

}  // namespace lacuna
