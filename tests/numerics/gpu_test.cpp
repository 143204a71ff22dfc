// What only a GPU can show: graphs, streams, large grids and offsets. Skipped without one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "tests/numerics/harness/graphs.hpp"
#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {
namespace {

/// Tensors lie on the GPU that LACUNA_TEST_DEVICE names; this is asked without one, too.
TEST(DeviceUnderTest, HasTheIndexOfItsName) {
  EXPECT_EQ(device_index("cuda:0"), 0);
  EXPECT_EQ(device_index("cuda:1"), 1);
  EXPECT_EQ(device_index("cuda:12"), 12);
  EXPECT_EQ(device_index("cuda"), 0);
  EXPECT_EQ(device_index("cpu"), 0);
}

/// Captures a launch and replays it with new data.
void replay(const Graphs& graphs, const Case& c) {
  SCOPED_TRACE(c.text());
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  Variant variant = make_variant(c, kernel.tile, 1);
  variant.reuse = 1;  // a replay decides anew
  Binding binding(engine().is_cuda, c, variant);
  ASSERT_EQ(binding.provide(kernel, c), "");
  void* const executable = graphs.capture(binding.args.stream, [&] {
    EXPECT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
  });
  ASSERT_NE(executable, nullptr);
  for (std::uint32_t round = 0; round < 3; ++round) {
    const Variant fresh = make_variant(c, kernel.tile, 100 + round);
    variant.problem.q = fresh.problem.q, variant.problem.k = fresh.problem.k,
    variant.problem.v = fresh.problem.v;
    binding.rewrite(c, variant.problem);
    binding.poison();
    ASSERT_EQ(graphs.launch(executable, binding.args.stream), 0);
    EXPECT_EQ(check_variant(c, variant, binding.collect(), true), "") << "round " << round;
  }
}

TEST(Gpu, ReplaysFromAGraphWithNewData) {
  REQUIRE_GPU();
  const Graphs graphs;
  // Instantiating a graph asks for a current context, which every host application that uses graphs
  // has; the library never leaves one behind.
  const auto device = open_gpu();
  ASSERT_TRUE(device);
  const ContextScope current(*device);
  ASSERT_EQ(current.result(), kCudaSuccess);
  std::vector<Case> cases;
  for (const std::string& name : all_names())
    cases.push_back({name, DType::kBF16, 128, 1, 4, 2, 500, 500, Fill::kUneven, false});
  compile_ahead(engine(), cases);
  for (const Case& c : cases) replay(graphs, c);
  // More work tiles than multiprocessors: the counter of rows begins anew in each replay.
  for (const char* name : {"dense", "bsfa", "external-mask", "fg-attn-cached", "flash-decoding"})
    replay(graphs, {name, DType::kBF16, 128, 1, 80, 40, 260, 400, Fill::kUneven, false});
}

TEST(Gpu, ThreeShapesOnTwoStreamsDoNotDisturbEachOther) {
  REQUIRE_GPU();
  std::vector<Case> cases;
  for (const std::string& name : all_names())
    cases.push_back({name, DType::kBF16, 128, 1, 4, 2, 900, 900, Fill::kUneven, false});
  compile_ahead(engine(), cases);
  for (const Case& a : cases) {
    const std::string& name = a.variant;
    const int n_q = name == "sparge-video" ? 450 : 333;  // a token order is one for q and k
    const Case b{name, DType::kBF16, 128, 2, 2, 1, n_q, 450, Fill::kUneven, false};
    const Case c{name, DType::kBF16, 128, 1, 6, 6, 130, 130, Fill::kUneven, false};
    TestKernel kernel(engine(), a);
    ASSERT_EQ(kernel.error, "");
    Variant variants[] = {make_variant(a, kernel.tile, 3), make_variant(b, kernel.tile, 4),
                          make_variant(c, kernel.tile, 5)};
    for (Variant& variant : variants) variant.reuse = 1;
    Binding x(engine().is_cuda, a, variants[0]), y(engine().is_cuda, b, variants[1]),
        z(engine().is_cuda, c, variants[2]);
    ASSERT_EQ(x.provide(kernel, a), "");
    ASSERT_EQ(y.provide(kernel, b), "");
    ASSERT_EQ(z.provide(kernel, c), "");
    z.args.stream = x.args.stream;
    for (int round = 0; round < 20; ++round) {
      for (const Binding* binding : {&x, &y, &z})
        ASSERT_EQ(lacuna_launch(kernel.kernel, &binding->args), LACUNA_OK) << lacuna_last_error();
    }
    EXPECT_EQ(check_variant(a, variants[0], x.collect(), true), "") << name;
    EXPECT_EQ(check_variant(b, variants[1], y.collect(), true), "") << name;
    EXPECT_EQ(check_variant(c, variants[2], z.collect(), true), "") << name;
  }
}

/// More work tiles than any GPU has multiprocessors, so that each persistent block takes several.
TEST(Gpu, AThousandLaunchesGiveTheSameBits) {
  REQUIRE_GPU();
  const auto device = open_gpu();
  ASSERT_TRUE(device);
  const ContextScope current(*device);
  const Driver& driver = *device->driver;
  for (const auto& [name, head_dim] :
       std::initializer_list<std::pair<const char*, int>>{{"dense", 64},
                                                          {"dense", 128},
                                                          {"dense", 256},
                                                          {"bsfa", 128},
                                                          {"external-mask", 128},
                                                          {"flash-decoding", 128},
                                                          {"sparge", 128}}) {
    const Case c{name, DType::kBF16, head_dim, 1, 80, 40, 260, 700, Fill::kUneven, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile, 9);
    variant.reuse = 1;
    Binding binding(engine().is_cuda, c, variant);
    ASSERT_EQ(binding.provide(kernel, c), "");
    std::vector<char> first, got(std::size_t{80} * 260 * static_cast<std::size_t>(head_dim) * 2);
    for (int launch = 0; launch < 1000; ++launch) {
      ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
      const auto address = reinterpret_cast<CUdeviceptr>(binding.o.view()->data);
      ASSERT_EQ(driver.cuStreamSynchronize(static_cast<CUstream>(binding.args.stream)),
                kCudaSuccess);
      ASSERT_EQ(driver.cuMemcpyDtoH(got.data(), address, got.size()), kCudaSuccess);
      if (first.empty()) first = got;
      ASSERT_TRUE(got == first) << name << ", d " << head_dim << ", launch " << launch;
      ASSERT_EQ(driver.cuMemsetD8(address, 0xff, got.size()), kCudaSuccess);
    }
  }
}

TEST(Gpu, LaunchesFromAThreadWithoutAContext) {
  REQUIRE_GPU();
  const Case c{"bsfa", DType::kBF16, 128, 1, 4, 2, 500, 500, Fill::kUneven, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile, 2);
  Reported got;
  std::thread([&] { got = run_variant(engine(), kernel, c, variant); }).join();
  EXPECT_EQ(check_variant(c, variant, got, true), "");
}

TEST(Gpu, MoreWorkTilesThanSixteenBits) {
  REQUIRE_GPU();
  const Case c{"alibi", DType::kF16, 64, 40, 2000, 1000, 3, 5, Fill::kNormal, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile, 6);
  EXPECT_EQ(check_variant(c, variant, run_variant(engine(), kernel, c, variant), true), "");
}

TEST(Gpu, OffsetsBeyondTwoToTheThirtyOne) {
  REQUIRE_GPU();
  const Case c{"bsfa", DType::kBF16, 64, 1, 2, 2, 100, 100, Fill::kUneven, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile, 8);
  Binding binding(engine().is_cuda, c, variant);
  ASSERT_EQ(binding.provide(kernel, c), "");

  // k and v again, their heads 5 * 2^30 elements (10 GiB) apart.
  const auto device = open_gpu();
  ASSERT_TRUE(device);
  const Driver& driver = *device->driver;
  Diagnostics diagnostics;
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
      ASSERT_EQ(driver.cuMemcpyDtoH(staging.data(), from, staging.size()), kCudaSuccess);
      ASSERT_EQ(driver.cuMemcpyHtoD(to, staging.data(), staging.size()), kCudaSuccess);
    }
    views[x].data = far[x].data();
    views[x].strides = stride;
  }
  binding.args.k = &views[0], binding.args.v = &views[1];
  ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
  EXPECT_EQ(check_variant(c, variant, binding.collect(), true), "");
}

/// A tensor's values at the end of an allocation, and the tensor there. Behind the last page of an
/// allocation nothing may be mapped, and compute-sanitizer knows its last byte.
struct AtTheEnd {
  DeviceBuffer buffer;
  DLTensor view;

  AtTheEnd(const std::shared_ptr<const Device>& device, const DLTensor& tensor) : view(tensor) {
    constexpr std::size_t kPage = std::size_t{2} << 20;
    std::size_t bytes = tensor.dtype.bits / 8U;
    for (int n = 0; n < tensor.ndim; ++n) bytes *= static_cast<std::size_t>(tensor.shape[n]);
    Diagnostics diagnostics;
    buffer = DeviceBuffer(device, (bytes + kPage - 1) / kPage * kPage, diagnostics);
    EXPECT_TRUE(buffer) << render(diagnostics, {});
    view.data = static_cast<char*>(buffer.data()) + buffer.bytes() - bytes;
    const ContextScope scope(*device);
    std::vector<char> staging(bytes);
    EXPECT_EQ(device->driver->cuMemcpyDtoH(staging.data(),
                                           reinterpret_cast<CUdeviceptr>(tensor.data), bytes),
              kCudaSuccess);
    EXPECT_EQ(device->driver->cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(view.data), staging.data(),
                                           bytes),
              kCudaSuccess);
  }
};

TEST(Gpu, ListsAndTokensMayEndWithTheirAllocation) {
  REQUIRE_GPU();
  const auto device = open_gpu();
  ASSERT_TRUE(device);
  for (const char* name : {"external-mask", "lists"}) {
    for (const int n_k : {384, 391}) {
      const Case c{name, DType::kBF16, 128, 1, 6, 3, 391, n_k, Fill::kUneven, false};
      SCOPED_TRACE(c.text());
      TestKernel kernel(engine(), c);
      ASSERT_EQ(kernel.error, "");
      Variant variant = make_variant(c, kernel.tile, 31);
      std::ranges::fill(variant.tiling.listed, std::uint8_t{1});  // the last list is full
      Binding binding(engine().is_cuda, c, variant);
      ASSERT_EQ(binding.provide(kernel, c), "");
      lacuna_launch_args& args = binding.args;
      const AtTheEnd q(device, *args.q), k(device, *args.k), v(device, *args.v),
          indices(device, *args.list_indices), counts(device, *args.list_counts);
      args.q = &q.view, args.k = &k.view, args.v = &v.view;
      args.list_indices = &indices.view, args.list_counts = &counts.view;
      ASSERT_EQ(lacuna_launch(kernel.kernel, &args), LACUNA_OK) << lacuna_last_error();
      EXPECT_EQ(check_variant(c, variant, binding.collect(), true), "");
    }
  }
}

}  // namespace
}  // namespace lacuna::numerics
