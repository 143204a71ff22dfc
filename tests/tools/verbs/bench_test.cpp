// bench and shapes: what is measured, not how long it takes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/command.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/measure/measure.hpp"
#include "tools/measure/random_problem.hpp"

namespace lacuna::tests {
namespace {

CommandResult bench(const std::string& spec, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench",      source_file("specs/" + spec + ".json"),
                                        "--device",   "cpu",
                                        "--shape",    "b=1,h=2,n=256",
                                        "--head-dim", "64",
                                        "--seconds",  "0.01",
                                        "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_lacuna(arguments);
}

TEST(Bench, TimesThePredictedLaunchTheAttendAloneAndDense) {
  const CommandResult result = bench("streaming", {"--param", "window=0", "--param", "sink=0"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  ASSERT_EQ(document["launches"].size(), 3u);
  const char* names[] = {"streaming", "attend", "dense"};
  for (std::size_t n = 0; n < 3; ++n) {
    const auto& launch = document["launches"][n];
    EXPECT_EQ(launch["name"], names[n]);
    EXPECT_GE(launch["runs"], 3);
    EXPECT_GT(launch["median_us"].get<double>(), 0.0);
    EXPECT_LE(launch["low_us"].get<double>(), launch["high_us"].get<double>());
  }
  EXPECT_EQ(document["launches"][2]["of_dense"], 1.0);
  EXPECT_FALSE(document.contains("kernels")) << "the CPU has no events";
  EXPECT_FALSE(document.contains("gemm_tflops"));
}

TEST(Measure, RepeatsALeastAndAMostNumberOfTimes) {
  std::vector<std::size_t> runs;
  tools::repeat_for(0, [&](std::size_t run) { runs.push_back(run); });
  EXPECT_EQ(runs, (std::vector<std::size_t>{0, 1, 2}));
  runs.clear();
  tools::repeat_for(60, [&](std::size_t run) { runs.push_back(run); });
  EXPECT_EQ(runs.size(), 200U);
}

TEST(Bench, DrawsRandomListsOfADensity) {
  const CommandResult result = bench("external-mask", {"--density", "0", "--seed", "7"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_EQ(document["tiles"]["visited"], 2 * 2) << "one tile in each work tile";
  const CommandResult refused = bench("dense", {"--density", "0.5"});
  EXPECT_EQ(refused.status, 1);
}

TEST(RandomProblem, ValuesAreNormalAndFollowTheSeed) {
  const LaunchShape shape{3, 2, 1, 384, 512};
  const auto inputs = tools::random_inputs(shape, 64, DType::kF32, 3);
  EXPECT_EQ(inputs.q.shape, (std::vector<std::int64_t>{3, 2, 384, 64}));
  EXPECT_EQ(inputs.k.shape, (std::vector<std::int64_t>{3, 1, 512, 64}));
  EXPECT_EQ(inputs.v.shape, inputs.k.shape);
  double sum = 0, squares = 0;
  const std::vector<float> values = tools::to_f32(inputs.q);
  for (const float x : values) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_EQ(inputs.q, tools::random_inputs(shape, 64, DType::kF32, 3).q);
  EXPECT_NE(inputs.q, tools::random_inputs(shape, 64, DType::kF32, 4).q);
}

TEST(RandomProblem, ATileMaskHasItsDensity) {
  const auto mask = tools::random_tile_mask({2, 4, 1, 4000, 8100}, 128, 64, 0.25, 1);
  ASSERT_EQ(mask.shape, (std::vector<std::int64_t>{2, 4, 32, 127}));
  double visited = 0;
  for (const char tile : mask.bytes) visited += tile;
  EXPECT_NEAR(visited / static_cast<double>(mask.bytes.size()), 0.25, 0.02);
}

TEST(ShapeOption, ReadsWhatIsGivenAndKeepsTheRest) {
  LaunchShape shape{1, 32, 8, 100, 200};
  EXPECT_EQ(tools::parse_shape("h=4,n_k=7", shape), "");
  EXPECT_EQ(tools::print_shape(shape), "b=1, h=4, h_kv=4, n_q=100, n_k=7");
  EXPECT_EQ(tools::parse_shape("b=2,n=9,h=6,h_kv=3", shape), "");
  EXPECT_EQ(tools::print_shape(shape), "b=2, h=6, h_kv=3, n_q=9, n_k=9");
}

TEST(ShapeOption, SaysWhatIsWrong) {
  LaunchShape shape{1, 32, 8, 100, 200};
  EXPECT_EQ(tools::parse_shape("heads=4", shape),
            "\"heads=4\": expected one of b, h, h_kv, n, n_q, n_k");
  EXPECT_EQ(tools::parse_shape("h=x", shape),
            "h: expected a whole number from 1 to 2147483647, got \"x\"");
  EXPECT_EQ(tools::parse_shape("h", shape),
            "h: expected a whole number from 1 to 2147483647, got \"\"");
  EXPECT_EQ(tools::parse_shape("n=0", shape),
            "n: expected a whole number from 1 to 2147483647, got \"0\"");
  EXPECT_EQ(tools::parse_shape("h=6,h_kv=4", shape), "h: expected a multiple of h_kv = 4, got 6");
}

}  // namespace
}  // namespace lacuna::tests
