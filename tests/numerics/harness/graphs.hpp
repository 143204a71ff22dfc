// Graphs of launches, for tests that need a GPU.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <type_traits>

#include "runtime/cuda/device_memory.hpp"

#define REQUIRE_GPU()               \
  if (device_under_test() == "cpu") \
  GTEST_SKIP() << "no GPU asked for: LACUNA_TEST_DEVICE is not set"

namespace lacuna::numerics {

/// The GPU under test; null, and the test has failed, if it cannot be opened.
inline std::shared_ptr<const Device> open_gpu() {
  Diagnostics diagnostics;
  const auto driver = load_driver(diagnostics);
  auto device =
      driver ? open_device(driver, device_index(device_under_test()), diagnostics) : nullptr;
  EXPECT_TRUE(device) << render(diagnostics, {});
  return device;
}

/// The driver's graph calls; the library itself uses none of them.
struct Graphs {
  using Stream = void*;
  int (*begin)(Stream, int);
  int (*end)(Stream, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*launch)(void*, Stream);

  Graphs() {
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
    const auto find = [&](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(cuda, name));
      if (!slot) std::abort();
    };
    find(begin, "cuStreamBeginCapture_v2");
    find(end, "cuStreamEndCapture");
    find(instantiate, "cuGraphInstantiateWithFlags");
    find(launch, "cuGraphLaunch");
  }

  /// What `launches` puts into the stream, as a graph to replay; null, and the test has failed, if
  /// that cannot be captured. Needs a current context.
  template <class Launches>
  void* capture(Stream stream, Launches launches) const {
    constexpr int kThreadLocal = 1;  // nothing unsafe may happen meanwhile
    void *graph = nullptr, *executable = nullptr;
    EXPECT_EQ(begin(stream, kThreadLocal), 0);
    launches();
    EXPECT_EQ(end(stream, &graph), 0);
    EXPECT_EQ(instantiate(&executable, graph, 0), 0);
    return executable;
  }
};

}  // namespace lacuna::numerics
