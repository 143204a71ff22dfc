// What only a GPU can show: graphs, streams, large grids and offsets. Skipped without one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "runtime/device_memory.hpp"
#include "tests/numerics/harness.hpp"

namespace lacuna::numerics {
namespace {

TestEngine& engine() {
  static TestEngine instance;
  return instance;
}

#define REQUIRE_GPU()               \
  if (device_under_test() == "cpu") \
  GTEST_SKIP() << "no GPU asked for: LACUNA_TEST_DEVICE is not set"

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
};

TEST(Gpu, ReplaysFromAGraphWithNewData) {
  REQUIRE_GPU();
  const Graphs graphs;
  for (const std::string& name : all_names()) {
    const Case c{name, DType::kBF16, 128, 1, 4, 2, 500, 500, Fill::kUneven, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile_q, kernel.tile_k, 1);
    variant.reuse = 1;  // a replay decides anew
    Binding binding(engine().is_cuda, c, variant);
    ASSERT_EQ(binding.provide(kernel, c), "");
    void *graph = nullptr, *executable = nullptr;
    ASSERT_EQ(graphs.begin(binding.args.stream, 1),
              0);  // thread-local capture: nothing unsafe may happen
    EXPECT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
    ASSERT_EQ(graphs.end(binding.args.stream, &graph), 0);
    ASSERT_EQ(graphs.instantiate(&executable, graph, 0), 0);
    for (std::uint32_t round = 0; round < 3; ++round) {
      const Variant fresh = make_variant(c, kernel.tile_q, kernel.tile_k, 100 + round);
      variant.problem.q = fresh.problem.q, variant.problem.k = fresh.problem.k,
      variant.problem.v = fresh.problem.v;
      binding.rewrite(c, variant.problem);
      binding.poison();
      ASSERT_EQ(graphs.launch(executable, binding.args.stream), 0);
      EXPECT_EQ(check_variant(c, variant, binding.collect(), true), "")
          << name << ", round " << round;
    }
  }
}

TEST(Gpu, TwoShapesOnTwoStreamsDoNotDisturbEachOther) {
  REQUIRE_GPU();
  for (const std::string& name : all_names()) {
    const Case a{name, DType::kBF16, 128, 1, 4, 2, 900, 900, Fill::kUneven, false};
    const int n_q = name == "sparge-video" ? 450 : 333;  // a token order is one for q and k
    const Case b{name, DType::kBF16, 128, 2, 2, 1, n_q, 450, Fill::kUneven, false};
    TestKernel kernel(engine(), a);
    ASSERT_EQ(kernel.error, "");
    Variant first = make_variant(a, kernel.tile_q, kernel.tile_k, 3);
    Variant second = make_variant(b, kernel.tile_q, kernel.tile_k, 4);
    first.reuse = second.reuse = 1;
    Binding x(engine().is_cuda, a, first), y(engine().is_cuda, b, second);
    ASSERT_EQ(x.provide(kernel, a), "");
    ASSERT_EQ(y.provide(kernel, b), "");
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(lacuna_launch(kernel.kernel, &x.args), LACUNA_OK);
      ASSERT_EQ(lacuna_launch(kernel.kernel, &y.args), LACUNA_OK);
    }
    EXPECT_EQ(check_variant(a, first, x.collect(), true), "") << name;
    EXPECT_EQ(check_variant(b, second, y.collect(), true), "") << name;
  }
}

TEST(Gpu, LaunchesFromAThreadWithoutAContext) {
  REQUIRE_GPU();
  const Case c{"bsfa", DType::kBF16, 128, 1, 4, 2, 500, 500, Fill::kUneven, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile_q, kernel.tile_k, 2);
  Reported got;
  std::thread([&] { got = run_variant(engine(), kernel, c, variant); }).join();
  EXPECT_EQ(check_variant(c, variant, got, true), "");
}

TEST(Gpu, MoreRowsOfTilesThanSixteenBits) {
  REQUIRE_GPU();
  const Case c{"alibi", DType::kF16, 64, 40, 2000, 1000, 3, 5, Fill::kNormal, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile_q, kernel.tile_k, 6);
  EXPECT_EQ(check_variant(c, variant, run_variant(engine(), kernel, c, variant), true), "");
}

TEST(Gpu, OffsetsBeyondTwoToTheThirtyOne) {
  REQUIRE_GPU();
  const Case c{"bsfa", DType::kBF16, 64, 1, 2, 2, 100, 100, Fill::kUneven, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile_q, kernel.tile_k, 8);
  Binding binding(engine().is_cuda, c, variant);

  // k and v again, their heads 5 * 2^30 elements (10 GiB) apart.
  Diagnostics diagnostics;
  const auto driver = load_driver(diagnostics);
  const auto device = open_device(driver, 0, diagnostics);
  const std::int64_t head_stride = std::int64_t{5} << 30, head_bytes = 100 * 64 * 2;
  DeviceBuffer far[2];
  DLTensor views[2] = {*binding.k.view(), *binding.v.view()};
  std::int64_t stride[4] = {2 * head_stride, head_stride, 64, 1};
  for (int x = 0; x < 2; ++x) {
    far[x] =
        DeviceBuffer(device, static_cast<std::size_t>(head_stride * 2 + head_bytes), diagnostics);
    ASSERT_TRUE(far[x]) << render(diagnostics, {});
    const ContextScope scope(*device);
    std::vector<char> staging(static_cast<std::size_t>(head_bytes));
    for (std::int64_t h = 0; h < 2; ++h) {
      const auto from =
          reinterpret_cast<CUdeviceptr>(views[x].data) + static_cast<CUdeviceptr>(h * head_bytes);
      const auto to = reinterpret_cast<CUdeviceptr>(far[x].data()) +
                      static_cast<CUdeviceptr>(h * head_stride * 2);
      ASSERT_EQ(driver->cuMemcpyDtoH(staging.data(), from, staging.size()), kCudaSuccess);
      ASSERT_EQ(driver->cuMemcpyHtoD(to, staging.data(), staging.size()), kCudaSuccess);
    }
    views[x].data = far[x].data();
    views[x].strides = stride;
  }
  binding.args.k = &views[0], binding.args.v = &views[1];
  ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
  EXPECT_EQ(check_variant(c, variant, binding.collect(), true), "");
}

}  // namespace
}  // namespace lacuna::numerics
