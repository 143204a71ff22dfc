#include "runtime/module.hpp"

namespace lacuna {
namespace {

bool ready_kernel(const Device& device, CUlibrary library, const KernelLaunch& launch,
                  CUkernel& kernel, Diagnostics& diagnostics) {
  const Driver& driver = *device.driver;
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

bool load_module(const Device& device, const std::string& cubin, const LaunchProgram& program,
                 LoadedModule& loaded, Diagnostics& diagnostics) {
  const Driver& driver = *device.driver;
  const ContextScope scope(device);
  if (!check_driver(driver, scope.result(), "entering the device's context", diagnostics)) {
    return false;
  }
  LoadedModule module;
  if (!check_driver(driver,
                    driver.cuLibraryLoadData(&module.library, cubin.data(), nullptr, nullptr, 0,
                                             nullptr, nullptr, 0),
                    "loading compiled code", diagnostics)) {
    return false;
  }
  for (const KernelLaunch& launch : program.launches) {
    CUkernel& kernel = module.kernels.emplace_back();
    if (!ready_kernel(device, module.library, launch, kernel, diagnostics)) {
      driver.cuLibraryUnload(module.library);
      return false;
    }
  }
  loaded = std::move(module);
  return true;
}

}  // namespace lacuna
