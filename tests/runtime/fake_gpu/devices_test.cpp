// Which devices a driver has, and what is said of one that cannot serve.
#include <gtest/gtest.h>

#include "runtime/cuda/device_memory.hpp"
#include "runtime/engine/probe.hpp"
#include "tests/runtime/fake_gpu/protocol.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

TEST_F(Protocol, AGpuOfAnUnknownArchitectureIsNamed) {
  fake().compute_capability = 137;
  try {
    engine("cuda:0");
    FAIL() << "created";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_ENVIRONMENT);
    EXPECT_EQ(std::string(e.what()),
              "lacuna: error: device cuda:0 (Fake GPU 0) has compute capability 13.7; this build "
              "knows sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a [E0703]\n");
  }
  Status status;
  EXPECT_FALSE(Engine::create({}, status)) << "nobody is moved to the CPU by the way";
  EXPECT_EQ(status.code, LACUNA_ERROR_ENVIRONMENT);
  EXPECT_NE(status.text.find("[E0703]\nhelp: device \"cpu\" does without a GPU\n"),
            std::string::npos)
      << status.text;
}

TEST_F(Protocol, ADriverThatCannotServeIsNamedWithTheReason) {
  const auto reason = [this] {
    try {
      engine("cuda:0");
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), LACUNA_ERROR_ENVIRONMENT);
      return std::string(e.what());
    }
    return std::string("none");
  };
  fake().init_result = 999;
  EXPECT_EQ(reason(),
            "lacuna: error: the NVIDIA driver cannot be initialised: CUDA_ERROR_FAKE (as the test "
            "asked) [E0704]\n");
  fake().missing_entry = "cuMemAlloc";
  EXPECT_EQ(reason(), "lacuna: error: the NVIDIA driver lacks cuMemAlloc [E0715]\n");
  fake().init_result = kCudaSuccess;
  fake().missing_entry = "cuFuncLoad";  // without which it does
  EXPECT_EQ(reason(), "none");
  Kernel kernel = bsfa(engine("cuda:0"));
  forget();
  kernel.prepare();
  EXPECT_EQ(count("cuFuncLoad"), 0);
  EXPECT_EQ(count("cuLibraryLoadData"), 1);
}

TEST_F(Protocol, ADeviceThatDoesNotExistIsNamedWithThoseThatDo) {
  try {
    engine("cuda:7");
    FAIL() << "created";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()),
              "lacuna: error: device: cuda:7 does not exist; there is cuda:0, cuda:1 [E0702]\n");
  }
}

TEST_F(Protocol, ADriverWithoutDevicesFallsBackToTheCpuWithTheReason) {
  fake().device_count = 0;
  const Engine e = engine();
  EXPECT_EQ(e.device(), "cpu");
  EXPECT_EQ(e.note().rfind(
                "no GPU: the NVIDIA driver is installed but finds no device, the CPU serves", 0),
            0U)
      << e.note();
}

TEST_F(Protocol, NvrtcMustNotBeNewerThanTheDriver) {
  fake().cuda_version = 11080;
  Kernel kernel = bsfa(engine_with_store(cache, "cuda:0"));
  try {
    kernel.prepare();
    FAIL() << "prepared";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_ENVIRONMENT);
    EXPECT_NE(std::string(e.what()).find(
                  "error: no NVRTC that the driver can serve (CUDA 11 or older) was found [E0705]"),
              std::string::npos)
        << e.what();
  }
}

TEST_F(Protocol, TheProbeListsTheDevices) {
  const DriverProbe probe = probe_driver();
  EXPECT_EQ(probe.missing, "");
  EXPECT_EQ(probe.cuda_version, 13000);
  ASSERT_EQ(probe.devices.size(), 2U);
  EXPECT_EQ(probe.devices[1].name, "Fake GPU 1");
  EXPECT_EQ(probe.devices[1].target, "sm_90a");
  EXPECT_EQ(probe.devices[1].multiprocessors, 132);
}

TEST_F(Protocol, DeviceMemoryGoesThereAndBack) {
  Diagnostics errors;
  const auto device = open_device(load_driver(errors), 1, errors);
  ASSERT_NE(device, nullptr);
  forget();
  {
    DeviceBuffer buffer(device, 12, errors);
    const char text[12] = "there, back";
    char result[12] = {};
    EXPECT_TRUE(buffer.copy_in(text, sizeof(text), errors));
    EXPECT_TRUE(buffer.copy_out(result, sizeof(result), errors));
    EXPECT_STREQ(result, text);
    EXPECT_TRUE(buffer.fill_zero(errors));
    EXPECT_TRUE(buffer.copy_out(result, sizeof(result), errors));
    EXPECT_STREQ(result, "");
    const DeviceBuffer moved = std::move(buffer);
    EXPECT_EQ(moved.bytes(), 12U);
    const DeviceStream stream(device, errors);
    DeviceTimer timer(device, errors);
    EXPECT_TRUE(timer.start(stream.handle(), errors));
    EXPECT_TRUE(timer.stop(stream.handle(), errors));
    EXPECT_EQ(timer.elapsed_us(errors), 1500.0);
  }
  EXPECT_FALSE(errors.has_errors());
  EXPECT_EQ(count("cuMemAlloc"), 1);
  EXPECT_EQ(count("cuMemFree"), 1);
}

}  // namespace
}  // namespace lacuna
