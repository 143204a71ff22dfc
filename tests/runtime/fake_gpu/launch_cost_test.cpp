// What a launch does not do again, and that it allocates nothing.
#include <gtest/gtest.h>

#include "tests/runtime/fake_gpu/count_allocations.hpp"
#include "tests/runtime/fake_gpu/protocol.hpp"

namespace lacuna {
namespace {

class LaunchCost : public Protocol {};

TEST_F(LaunchCost, MapsThatAnEarlierLaunchMadeServeAgain) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  kernel.launch(arguments());
  forget();
  kernel.launch(arguments());
  EXPECT_EQ(count("cuTensorMapEncodeTiled"), 0);
  for (int map = 0; map < 4; ++map) EXPECT_EQ(fake().arguments[map * 128], map + 1);
  LaunchArgs moved = arguments();
  moved.k = Tensor(reinterpret_cast<void*>(std::size_t{0x70000}), bf16, {2, 2, 200, 128}, cuda(0));
  forget();
  kernel.launch(moved);
  EXPECT_EQ(count("cuTensorMapEncodeTiled"), 1);
  EXPECT_EQ(fake().arguments[0], 1) << "that of q serves on";
  LaunchArgs other_strides = arguments();
  other_strides.k = Tensor(reinterpret_cast<void*>(std::size_t{0x20000}), bf16, {2, 2, 200, 128},
                           cuda(0), {2 * 200 * 128, 128, 2 * 128, 1});
  forget();
  kernel.launch(other_strides);
  EXPECT_EQ(count("cuTensorMapEncodeTiled"), 1);
}

TEST_F(LaunchCost, LaunchesOfSeveralShapesInTurnKeepTheirValues) {
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  LaunchArgs small = arguments();
  small.q = Tensor(reinterpret_cast<void*>(std::size_t{0x10000}), bf16, {2, 8, 100, 128}, cuda(0));
  small.o = Tensor(reinterpret_cast<void*>(std::size_t{0x40000}), bf16, {2, 8, 100, 128}, cuda(0));
  small.counts = Tensor();
  for (int turn = 0; turn < 3; ++turn) {
    forget();
    kernel.launch(arguments());
    EXPECT_EQ(fake().config.grid_x, 2U * 8U * 3U);
    forget();
    kernel.launch(small);
    EXPECT_EQ(fake().config.grid_x, 2U * 8U * 1U);
  }
}

TEST_F(LaunchCost, LaunchAllocatesNothing) {
  bsfa(engine()).prepare();  // publishes; the next one is a hit and has nothing to publish
  Kernel kernel = bsfa(engine());
  kernel.prepare();
  detail::with_raw_args(arguments(), [&](const lacuna_launch_args& raw) {
    const long before = allocations_of_this_thread();
    for (int i = 0; i < 100; ++i) ASSERT_EQ(lacuna_launch(kernel.handle(), &raw), LACUNA_OK);
    EXPECT_EQ(allocations_of_this_thread() - before, 0);
  });
}

TEST_F(LaunchCost, LaunchOfSequencesAllocatesNothing) {
  const auto make = [this] {
    Kernel kernel = engine().compile(Spec::parse(R"({"version": 1, "name": "dense"})"),
                                     {.head_dim = 128, .batch = Batch::kPages});
    kernel.prepare();
    return kernel;
  };
  make();
  const Kernel kernel = make();
  const auto tensor = [](std::size_t address, DLDataType dtype,
                         std::initializer_list<std::int64_t> shape) {
    return Tensor(reinterpret_cast<void*>(address), dtype, shape, cuda(0));
  };
  const Tensor q = tensor(0x10000, bf16, {1, 8, 3, 128}),
               k = tensor(0x20000, bf16, {9, 2, 64, 128}), numbers = tensor(0x30000, i32, {4}),
               lengths = tensor(0x30000, i32, {3}), pages = tensor(0x40000, i32, {3, 4});
  const DLTensor views[] = {q.view(), k.view(), numbers.view(), lengths.view(), pages.view()};
  lacuna_sequences sequences{};
  sequences.struct_size = sizeof(sequences);
  sequences.count = 3;
  sequences.max_n_q = 1;
  sequences.q_begin = &views[2];
  sequences.n_k = &views[3];
  sequences.pages = &views[4];
  lacuna_launch_args raw{};
  raw.struct_size = sizeof(raw);
  raw.q = raw.o = &views[0];
  raw.k = raw.v = &views[1];
  raw.sequences = &sequences;
  raw.workspace = reinterpret_cast<void*>(std::size_t{0x100000});
  raw.workspace_bytes = std::size_t{1} << 30;
  forget();
  const long before = allocations_of_this_thread();
  for (int i = 0; i < 100; ++i) {
    sequences.max_n_k = 1 + i;  // a step of a decode each
    ASSERT_EQ(lacuna_launch(kernel.handle(), &raw), LACUNA_OK) << lacuna_last_error();
  }
  EXPECT_EQ(allocations_of_this_thread() - before, 0);
  EXPECT_EQ(count("cuLaunchKernelEx"), 100) << "attend makes its schedule itself";
  EXPECT_EQ(count("cuMemsetD8Async"), 100) << "its counters";
  EXPECT_EQ(count("cuTensorMapEncodeTiled"), 2) << "those of q, and of k and v, which are alike";
}

}  // namespace
}  // namespace lacuna
