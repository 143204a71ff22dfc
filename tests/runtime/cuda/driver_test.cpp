// What is made of the driver's answers: devices that do not answer, errors without a name, whose
// context a call runs in.
#include "runtime/cuda/driver.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lacuna {
namespace {

/// The fake driver behind the table of these tests: one GPU, and the contexts of the calling
/// thread.
struct FakeState {
  std::vector<CUcontext> contexts;  ///< the last is current
  CUdevice device_of_context = 0;   ///< of all of them
  CUresult context_result = 0;      ///< of cuCtxGetCurrent
  CUresult attribute_result = 0;
};
FakeState fake;

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

Driver fake_driver() {
  fake = {};
  Driver driver;
  driver.cuGetErrorName = [](CUresult error, const char** text) -> CUresult {
    *text = error == 7 ? "CUDA_ERROR_SEVEN" : error == 8 ? "CUDA_ERROR_EIGHT" : nullptr;
    return *text == nullptr ? 1 : 0;
  };
  driver.cuGetErrorString = [](CUresult error, const char** text) -> CUresult {
    *text = error == 7 ? "seven of them" : nullptr;
    return *text == nullptr ? 1 : 0;
  };
  driver.cuDeviceGetCount = [](int* count) -> CUresult { return *count = 1, 0; };
  driver.cuDeviceGet = [](CUdevice* device, int index) -> CUresult {
    *device = index;
    return index == 0 ? 0 : 101;
  };
  driver.cuDeviceGetName = [](char* name, int bytes, CUdevice) -> CUresult {
    return std::string("Fake").copy(name, static_cast<std::size_t>(bytes)), fake.attribute_result;
  };
  driver.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) -> CUresult {
    return *bytes = 80, fake.attribute_result;
  };
  driver.cuDeviceGetAttribute = [](int* value, int attribute, CUdevice) -> CUresult {
    *value = attribute == kAttributeComputeCapabilityMajor   ? 9
             : attribute == kAttributeComputeCapabilityMinor ? 3
                                                             : 132;
    return fake.attribute_result;
  };
  driver.cuCtxGetCurrent = [](CUcontext* current) -> CUresult {
    *current = fake.contexts.empty() ? nullptr : fake.contexts.back();
    return fake.context_result;
  };
  driver.cuCtxGetDevice = [](CUdevice* device) -> CUresult {
    return *device = fake.device_of_context, 0;
  };
  driver.cuCtxPushCurrent = [](CUcontext pushed) -> CUresult {
    return fake.contexts.push_back(pushed), 0;
  };
  driver.cuCtxPopCurrent = [](CUcontext* popped) -> CUresult {
    *popped = fake.contexts.back();
    return fake.contexts.pop_back(), 0;
  };
  return driver;
}

TEST(DriverTable, ADeviceIsDescribedOrNothingIsSaidOfIt) {
  const Driver driver = fake_driver();
  EXPECT_EQ(device_name(driver, 0), "Fake");
  EXPECT_EQ(compute_capability(driver, 0), 93);
  EXPECT_EQ(device_attribute(driver, 0, kAttributeMultiprocessorCount), 132);
  EXPECT_EQ(device_memory_bytes(driver, 0), 80u);
  const auto expect_nothing = [&](int index) {
    EXPECT_EQ(device_name(driver, index), "");
    EXPECT_EQ(compute_capability(driver, index), 0);
    EXPECT_EQ(device_memory_bytes(driver, index), 0u);
  };
  expect_nothing(1);  // there is none
  fake.attribute_result = 1;
  expect_nothing(0);
}

TEST(DriverTable, AnErrorIsNamedAsFarAsTheDriverKnowsIt) {
  const Driver driver = fake_driver();
  EXPECT_EQ(driver_error_text(driver, 7), "CUDA_ERROR_SEVEN (seven of them)");
  EXPECT_EQ(driver_error_text(driver, 8), "CUDA_ERROR_EIGHT");
  EXPECT_EQ(driver_error_text(driver, 9), "CUDA error 9");
  Diagnostics diagnostics;
  EXPECT_TRUE(check_driver(driver, kCudaSuccess, "cuSomething", diagnostics));
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_FALSE(check_driver(driver, 8, "cuSomething", diagnostics));
  EXPECT_EQ(diagnostics.items.at(0).message, "cuSomething: CUDA_ERROR_EIGHT");
}

/// A context that is current inside the scope, and what is left behind it.
void expect_context(const Device& device, CUcontext inside) {
  const std::vector<CUcontext> before = fake.contexts;
  {
    const ContextScope scope(device);
    EXPECT_EQ(scope.result(), kCudaSuccess);
    ASSERT_FALSE(fake.contexts.empty());
    EXPECT_EQ(fake.contexts.back(), inside);
  }
  EXPECT_EQ(fake.contexts, before);
}

TEST(DriverTable, ACallersContextOfTheDeviceIsKeptAndAnotherIsLaidAside) {
  const CUcontext primary = context(1), callers = context(2);
  Device device;
  device.driver = std::make_shared<const Driver>(fake_driver());
  device.handle = 5;
  device.primary = primary;
  expect_context(device, primary);  // none is current
  fake.contexts = {primary};
  expect_context(device, primary);
  fake.contexts = {callers};
  fake.device_of_context = 5;
  expect_context(device, callers);
  fake.device_of_context = 6;
  expect_context(device, primary);
  fake.context_result = 201;
  const ContextScope scope(device);
  EXPECT_EQ(scope.result(), 201);
  EXPECT_EQ(fake.contexts, std::vector{callers});
}

}  // namespace
}  // namespace lacuna
