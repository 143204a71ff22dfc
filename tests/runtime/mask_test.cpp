// Decisions that serve again on the CPU: a mask object holds the kept tiles.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/dense_problem.hpp"

namespace lacuna {
namespace {

using namespace dense_problem;  // NOLINT(google-build-using-namespace)

/// The first tile of keys is kept while `keep_first` says so, the others always.
constexpr const char* kReusing = R"({
  "version": 1, "name": "switch",
  "params": { "keep_first": { "shape": "scalar", "default": 1, "doc": "keeps the first tile" } },
  "predictor": { "tile": { "q": 64, "k": 64 }, "keep": "j > 0 or keep_first > 0.5", "reuse": 2 }
})";

class CpuMask : public testing::Test {
 protected:
  v1::Kernel kernel = cpu_engine().compile(Spec::parse(kReusing, "switch.json"), {kDim, f32});
  v1::Shape shape{1, kHeads, kHeadsKv, kQueries, kKeys};
  alignas(256) unsigned char data[256] = {};

  /// The output of a launch in which the first tile is kept or not.
  std::vector<float> launch(bool keep_first, lacuna_selection* mask) {
    Problem problem;
    LaunchArgs args = problem.arguments();
    args.params.emplace_back("keep_first", keep_first ? 1.0 : 0.0);
    args.mask = mask;
    kernel.launch(args);
    return problem.o;
  }
};

TEST_F(CpuMask, NoWorkspaceIsNeeded) { EXPECT_EQ(kernel.workspace_bytes(shape), 0U); }

TEST_F(CpuMask, HoldsABitForEachTile) {
  // One word for each head: one work tile, two tiles.
  EXPECT_EQ(kernel.mask_bytes(shape), std::size_t{kHeads} * 4);
  Mask mask(data, sizeof(data));
  launch(true, &mask);
  for (int h = 0; h < kHeads; ++h) EXPECT_EQ(data[4 * h], 3) << h;
}

TEST_F(CpuMask, TheSecondLaunchIsServedByTheFirst) {
  const std::vector<float> all = launch(true, nullptr), without_first = launch(false, nullptr);
  ASSERT_NE(all, without_first);
  Mask mask(data, sizeof(data));
  EXPECT_EQ(launch(true, &mask), all);
  EXPECT_EQ(mask.calls, 1);
  EXPECT_EQ(launch(false, &mask), all) << "decided before";
  EXPECT_EQ(mask.calls, 0);
  EXPECT_EQ(launch(false, &mask), without_first) << "decided anew";
  mask.forget();
  EXPECT_EQ(launch(true, &mask), all) << "forgotten";
}

TEST_F(CpuMask, TooSmallIsRefused) {
  Mask mask(data, 4);
  try {
    launch(true, &mask);
    FAIL() << "launched";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "switch.json: error: kernel switch, mask.data: expected 16 bytes, got 4 "
                 "[E0504]\n");
  }
  EXPECT_EQ(mask.calls, 0);
}

}  // namespace
}  // namespace lacuna
