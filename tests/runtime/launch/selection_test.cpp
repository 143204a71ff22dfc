// Decisions that serve again on the CPU: a selection holds the kept tiles.
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
  std::vector<float> launch(bool keep_first, lacuna_selection* selection) {
    Problem problem;
    LaunchArgs args = problem.arguments();
    args.params.emplace_back("keep_first", keep_first ? 1.0 : 0.0);
    args.selection = selection;
    kernel.launch(args);
    return problem.o;
  }
};

TEST_F(CpuMask, NoWorkspaceIsNeeded) { EXPECT_EQ(kernel.workspace_bytes(shape), 0U); }

TEST_F(CpuMask, HoldsABitForEachTile) {
  // One word for each head: one work tile, two tiles.
  EXPECT_EQ(kernel.selection_bytes(shape), std::size_t{kHeads} * 4);
  Selection selection(data, sizeof(data));
  launch(true, &selection);
  for (int h = 0; h < kHeads; ++h) EXPECT_EQ(data[4 * h], 3) << h;
}

TEST_F(CpuMask, TheSecondLaunchIsServedByTheFirst) {
  const std::vector<float> all = launch(true, nullptr), without_first = launch(false, nullptr);
  ASSERT_NE(all, without_first);
  Selection selection(data, sizeof(data));
  EXPECT_EQ(launch(true, &selection), all);
  EXPECT_EQ(selection.calls, 1);
  EXPECT_EQ(launch(false, &selection), all) << "decided before";
  EXPECT_EQ(selection.calls, 0);
  EXPECT_EQ(launch(false, &selection), without_first) << "decided anew";
  selection.forget();
  EXPECT_EQ(launch(true, &selection), all) << "forgotten";
}

TEST_F(CpuMask, TooSmallIsRefused) {
  Selection selection(data, 4);
  try {
    launch(true, &selection);
    FAIL() << "launched";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "switch.json: error: kernel switch, selection.data: expected 16 bytes, got 4 "
                 "[E0504]\n");
  }
  EXPECT_EQ(selection.calls, 0);
}

}  // namespace
}  // namespace lacuna
