// The launch of a kernel whose work tiles are split: reports are cleared first, combine comes
// last.
#include <algorithm>

#include "tests/runtime/fake_gpu/protocol.hpp"

namespace lacuna {
namespace {

constexpr const char* kSplit =
    R"({"version": 1, "name": "split", "tile": {"q": 128, "k": 64, "split_kv": 4}})";

class SplitKv : public Protocol {
 protected:
  Kernel prepared() { return Protocol::prepared(engine(), kSplit, "split.json"); }

  /// What reached the stream, in its order.
  static std::vector<std::string> enqueued() {
    std::vector<std::string> names = calls();
    std::erase_if(names, [](const std::string& name) {
      return name != "cuMemsetD8Async" && name != "cuLaunchKernelEx";
    });
    return names;
  }
};

TEST_F(SplitKv, ReportsThatAreWantedAreClearedBeforeTheKernels) {
  const Kernel kernel = prepared();
  LaunchArgs args = arguments(kernel);
  kernel.launch(args);
  EXPECT_EQ(enqueued(), (std::vector<std::string>{"cuMemsetD8Async", "cuMemsetD8Async",
                                                  "cuLaunchKernelEx", "cuLaunchKernelEx"}))
      << "the counter of rows, counts; attend, combine";
  EXPECT_EQ(fake().cleared, 0x50000U);
  EXPECT_EQ(fake().cleared_bytes, 2U * 8 * 3 * 3 * 4);
  args.tile_mask = Tensor(reinterpret_cast<void*>(std::size_t{0x70000}), u8, {2, 8, 3, 4}, cuda(0));
  forget();
  kernel.launch(args);
  EXPECT_EQ(count("cuMemsetD8Async"), 3);
  EXPECT_EQ(fake().cleared, 0x70000U);
  EXPECT_EQ(fake().cleared_bytes, 2U * 8 * 3 * 4);
  args.counts = args.tile_mask = Tensor();
  forget();
  kernel.launch(args);
  EXPECT_EQ(count("cuMemsetD8Async"), 1);
}

TEST_F(SplitKv, TheWorkspaceIsAskedForAndChecked) {
  const Kernel kernel = prepared();
  LaunchArgs args = arguments(kernel);
  EXPECT_GE(args.workspace_bytes, 4U * 16 * 300 * (128 + 1) * 4);
  args.workspace_bytes = 256;
  EXPECT_THROW(kernel.launch(args), Error);
  EXPECT_EQ(count("cuLaunchKernelEx"), 0);
  EXPECT_NE(kernel.info_json().find(R"("stages":["attend","combine"])"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
