#include "runtime/cuda/driver.hpp"

#include "runtime/base/dynamic_library.hpp"

namespace lacuna {
namespace {

enum class Need : unsigned char { kRequired, kOptional };

using GetProcAddress = CUresult (*)(const char* name, void** address, int cuda_version,
                                    std::uint64_t flags, int* status);

void add_environment_error(Code code, std::string message, Diagnostics& diagnostics) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  diagnostics.add(std::move(d));
}

/// Names of required entries that this driver does not have.
std::string resolve(GetProcAddress get, Driver& driver) {
  std::string missing;
  const auto resolve_one = [&](Need need, const char* name, int abi, void** slot) {
    int status = 0;
    if (get(name, slot, abi, 0, &status) != kCudaSuccess) *slot = nullptr;
    if (*slot == nullptr && need == Need::kRequired) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  };
#define LACUNA_DRIVER(need, name, abi, parameters) \
  resolve_one(Need::need, #name, abi, reinterpret_cast<void**>(&driver.name));
#include "runtime/cuda/driver.def"
#undef LACUNA_DRIVER
  return missing;
}

}  // namespace

std::shared_ptr<const Driver> load_driver(Diagnostics& diagnostics) {
  const DynamicLibrary library = open_library("libcuda.so.1");
  if (!library) {
    add_environment_error(Code::kNoDriver,
                          "no NVIDIA driver: libcuda.so.1 was not found by the dynamic loader",
                          diagnostics);
    return nullptr;
  }
  const auto get = reinterpret_cast<GetProcAddress>(library.symbol("cuGetProcAddress_v2"));
  if (get == nullptr) {
    add_environment_error(Code::kOldDriver,
                          "the NVIDIA driver is too old: it must support CUDA 12.0 or newer "
                          "(libcuda.so.1 has no cuGetProcAddress_v2)",
                          diagnostics);
    return nullptr;
  }
  auto driver = std::make_shared<Driver>();
  if (const std::string missing = resolve(get, *driver); !missing.empty()) {
    add_environment_error(Code::kOldDriver, "the NVIDIA driver lacks " + missing, diagnostics);
    return nullptr;
  }
  if (const CUresult result = driver->cuInit(0); result != kCudaSuccess) {
    if (result == kCudaErrorNoDevice) {
      add_environment_error(Code::kNoDevice,
                            "no GPU: the NVIDIA driver is installed but finds no device",
                            diagnostics);
    } else {
      add_environment_error(
          Code::kDriverCall,
          "the NVIDIA driver cannot be initialised: " + driver_error_text(*driver, result),
          diagnostics);
    }
    return nullptr;
  }
  driver->cuDriverGetVersion(&driver->cuda_version);
  return driver;
}

int device_count(const Driver& driver) {
  int count = 0;
  return driver.cuDeviceGetCount(&count) == kCudaSuccess ? count : 0;
}

std::string device_name(const Driver& driver, int index) {
  CUdevice device = 0;
  char name[256] = {};
  if (driver.cuDeviceGet(&device, index) != kCudaSuccess) return "";
  if (driver.cuDeviceGetName(name, sizeof(name) - 1, device) != kCudaSuccess) return "";
  return name;
}

int device_attribute(const Driver& driver, int index, int attribute) {
  CUdevice device = 0;
  int value = 0;
  if (driver.cuDeviceGet(&device, index) != kCudaSuccess) return 0;
  if (driver.cuDeviceGetAttribute(&value, attribute, device) != kCudaSuccess) return 0;
  return value;
}

int compute_capability(const Driver& driver, int index) {
  return 10 * device_attribute(driver, index, kAttributeComputeCapabilityMajor) +
         device_attribute(driver, index, kAttributeComputeCapabilityMinor);
}

std::uint64_t device_memory_bytes(const Driver& driver, int index) {
  CUdevice device = 0;
  std::size_t bytes = 0;
  if (driver.cuDeviceGet(&device, index) != kCudaSuccess) return 0;
  return driver.cuDeviceTotalMem(&bytes, device) == kCudaSuccess ? bytes : 0;
}

std::shared_ptr<const Device> open_device(std::shared_ptr<const Driver> driver, int index,
                                          Diagnostics& diagnostics) {
  const int count = device_count(*driver);
  if (index < 0 || index >= count) {
    std::string known;
    for (int i = 0; i < count; ++i) known += (i == 0 ? "cuda:" : ", cuda:") + std::to_string(i);
    add_environment_error(Code::kNoDevice,
                          "device: cuda:" + std::to_string(index) + " does not exist; " +
                              (known.empty() ? "the driver finds no GPU" : "there is " + known),
                          diagnostics);
    return nullptr;
  }
  auto device = std::make_shared<Device>();
  device->driver = std::move(driver);
  device->index = index;
  const Driver& d = *device->driver;
  if (!check_driver(d, d.cuDeviceGet(&device->handle, index), "cuDeviceGet", diagnostics) ||
      !check_driver(d, d.cuDevicePrimaryCtxRetain(&device->primary, device->handle),
                    "cuDevicePrimaryCtxRetain", diagnostics)) {
    return nullptr;
  }
  device->sm_count = device_attribute(d, index, kAttributeMultiprocessorCount);
  return device;
}

std::string driver_error_text(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != kCudaSuccess || name == nullptr) {
    return "CUDA error " + std::to_string(result);
  }
  if (driver.cuGetErrorString(result, &text) != kCudaSuccess || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

bool check_driver(const Driver& driver, CUresult result, const char* doing,
                  Diagnostics& diagnostics) {
  if (result == kCudaSuccess) return true;
  add_environment_error(Code::kDriverCall,
                        std::string(doing) + ": " + driver_error_text(driver, result), diagnostics);
  return false;
}

bool is_capturing(const Driver& driver, void* stream) {
  if (driver.cuStreamIsCapturing == nullptr) return false;
  int status = 0;
  const CUresult asked = driver.cuStreamIsCapturing(static_cast<CUstream>(stream), &status);
  return asked == kCudaSuccess && status != 0;
}

ContextScope::ContextScope(const Device& device) : driver_(*device.driver) {
  CUcontext current = nullptr;
  result_ = driver_.cuCtxGetCurrent(&current);
  if (result_ != kCudaSuccess || current == device.primary) return;
  CUdevice current_device = -1;
  if (current != nullptr && driver_.cuCtxGetDevice(&current_device) == kCudaSuccess &&
      current_device == device.handle) {
    return;
  }
  result_ = driver_.cuCtxPushCurrent(device.primary);
  pushed_ = result_ == kCudaSuccess;
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.cuCtxPopCurrent(&popped);
}

}  // namespace lacuna
