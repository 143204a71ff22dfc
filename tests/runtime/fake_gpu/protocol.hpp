// The fixture of tests that watch what the library asks of the driver.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "compiler/spec/spec.hpp"
#include "lacuna/lacuna.hpp"
#include "runtime/engine/probe.hpp"
#include "tests/runtime/fake_gpu/fake_cuda.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {

inline const std::string kBsfa = LACUNA_SOURCE_DIR "/specs/bsfa.json";
inline constexpr const char* kQuick = R"({
  "version": 1, "name": "quick", "loader": "cp_async", "tile": {"q": 128, "k": 16},
  "params": {"threshold": {"shape": "scalar", "default": "-inf", "doc": "that arguments() has"}},
  "gate": {"scope": "tile", "skip": "tile_max < threshold", "skips": ["pv"]}
})";
/// Of Protocol::arguments().
inline constexpr v1::Shape kShape{2, 8, 2, 300, 200};

inline FakeCuda& fake() {
  static FakeCuda* const instance = [] {
    void* library = dlopen(LACUNA_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
  }();
  return *instance;
}

class Protocol : public testing::Test {
 protected:
  void SetUp() override {
    fake().device_count = 2;
    fake().compute_capability = 90;
    fake().cuda_version = 13000;
    fake().loads_to_accept = fake().loads_to_refuse = 0;
    fake().kernel_count = 0;
    fake().init_result = kCudaSuccess;
    fake().missing_entry = "";
    fake().launch_result = kCudaSuccess;
    fake().map_result = kCudaSuccess;
    fake().fill_result = kCudaSuccess;
    forget();
    if (const NvrtcProbe nvrtc = probe_nvrtc(13); !nvrtc.info) GTEST_SKIP() << nvrtc.missing;
  }

  static void forget() {
    fake().log_count = 0;
    fake().launch_count = 0;
    fake().event_count = 0;
    fake().wait_count = 0;
    fake().map_count = 0;
    fake().launched = nullptr;
  }

  static std::vector<std::string> calls() { return {fake().log, fake().log + fake().log_count}; }
  static long count(const std::string& call) {
    const auto all = calls();
    return std::count(all.begin(), all.end(), call);
  }

  /// With a store that the whole suite shares, so that few tests compile.
  Engine engine(const std::string& device = "") {
    static const TemporaryDirectory shared;
    return engine_with_store(shared, device);
  }

  Engine engine_with_store(const TemporaryDirectory& directory, const std::string& device = "") {
    EngineOptions options;
    options.device = device;
    options.cache_directory = directory.text();
    options.on_event = [this](const char* event, const char*) { events.push_back(event); };
    return Engine::create(options);
  }

  Kernel bsfa(const Engine& e) { return e.compile(Spec::load(kBsfa), {128, bf16}); }
  /// For tests with a store of their own: NVRTC needs a sixth of the time of bsfa's.
  static Kernel quick(const Engine& e) { return compiled(e, kQuick, "quick.json"); }

  std::vector<cache::EntryInfo> stored() const {
    cache::StoreOptions options;
    options.directory = cache.text();
    return cache::Store(options).list();
  }

  static LaunchArgs arguments(int device = 0) {
    const auto at = [](std::size_t address) { return reinterpret_cast<void*>(address); };
    LaunchArgs args;
    args.q = Tensor(at(0x10000), bf16, {2, 8, 300, 128}, cuda(device));
    args.k = Tensor(at(0x20000), bf16, {2, 2, 200, 128}, cuda(device));
    args.v = Tensor(at(0x30000), bf16, {2, 2, 200, 128}, cuda(device));
    args.o = Tensor(at(0x40000), bf16, {2, 8, 300, 128}, cuda(device));
    args.counts = Tensor(at(0x50000), i32, {2, 8, 3, 3}, cuda(device));
    args.params.emplace_back("threshold", -3.5);
    args.stream = at(0x5000);
    args.workspace = at(0x60000);
    args.workspace_bytes = 256;
    return args;
  }

  static Kernel compiled(const Engine& e, const char* spec, const char* origin) {
    return e.compile(Spec::parse(spec, origin), {128, bf16});
  }
  /// Nothing that this asks of the driver is left in the log.
  static Kernel prepared(const Engine& e, const char* spec, const char* origin) {
    Kernel kernel = compiled(e, spec, origin);
    kernel.prepare();
    forget();
    return kernel;
  }
  /// Of a kernel without parameters, with as much workspace as it wants, which the fake never
  /// touches.
  static LaunchArgs arguments(const Kernel& kernel) {
    LaunchArgs args = arguments();
    args.params.clear();
    args.workspace = reinterpret_cast<void*>(std::size_t{0x100000});
    args.workspace_bytes = kernel.workspace_bytes(kShape);
    return args;
  }

  TemporaryDirectory cache;
  std::vector<std::string> events;
};

}  // namespace lacuna
