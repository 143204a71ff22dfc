// What each branch of a spec reports and keeps, by its name, in both executors of the CPU.
#include <cstring>

#include "tests/runtime/cpu_backends.hpp"
#include "tests/runtime/dense_problem.hpp"

namespace lacuna {
namespace {

using namespace dense_problem;  // NOLINT(google-build-using-namespace)

/// 37 queries of 70 keys: the predictor keeps the first of two tiles of keys while `keep_first`
/// says so, and always the second; the other branch has means of 5 keys and sees half of them.
constexpr const char* kBranches = R"({
  "version": 1, "name": "parts",
  "params": { "keep_first": { "shape": "scalar", "default": 1 } },
  "branches": [
    { "name": "tokens", "weight": "1",
      "predictor": { "tile": { "q": 64, "k": 64 }, "keep": "j > 0 or keep_first > 0.5", "reuse": 2 },
      "tile": { "q": 64, "k": 64 } },
    { "name": "means", "weight": "-0.5", "means": 5, "attention": { "mask": "k < 35" },
      "tile": { "q": 16, "k": 16 } }
  ]
})";

class CpuBranches : public CpuBackends {
 protected:
  void SetUp() override {
    CpuBackends::SetUp();
    if (IsSkipped()) return;
    kernel = cpu_engine().compile(Spec::parse(kBranches, "parts.json"), {kDim, f32});
  }
  std::vector<float> launch(double keep_first, std::vector<BranchArgs> branches) {
    Problem problem;
    LaunchArgs args = problem.arguments();
    args.lse = {};
    args.params.emplace_back("keep_first", keep_first);
    args.branches = std::move(branches);
    kernel.launch(args);
    return problem.o;
  }
  std::string refusal(std::vector<BranchArgs> branches) {
    try {
      launch(1, std::move(branches));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  v1::Kernel kernel;
  v1::Shape shape{1, kHeads, kHeadsKv, kQueries, kKeys};
};

TEST_P(CpuBranches, ReportTheirOwnTiles) {
  EXPECT_EQ(kernel.tile("tokens").k, 64);
  EXPECT_EQ(kernel.tile("means").q, 16);
  EXPECT_EQ(kernel.tile("means").k, 16);
  std::vector<std::int32_t> tokens(kHeads * 3, -1), means(std::size_t{kHeads} * 3 * 3, -1);
  std::vector<std::uint8_t> mask(std::size_t{kHeads} * 2, 9);
  const Tensor of_tokens(tokens.data(), i32, {1, kHeads, 1, 3});
  const Tensor mask_of_tokens(mask.data(), u8, {1, kHeads, 1, 2});
  const Tensor of_means(means.data(), i32, {1, kHeads, 3, 3});
  const std::vector<float> o =
      launch(0, {{"means", of_means}, {"tokens", of_tokens, mask_of_tokens}});
  for (std::size_t h = 0; h < kHeads; ++h) {
    EXPECT_EQ(std::vector<std::int32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(3 * h),
                                        tokens.begin() + static_cast<std::ptrdiff_t>(3 * h + 3)),
              (std::vector<std::int32_t>{2, 1, 0}));
    EXPECT_EQ(mask[2 * h], 0);
    EXPECT_EQ(mask[2 * h + 1], 1);
    EXPECT_EQ(means[9 * h], 1) << "14 means in one tile";
    EXPECT_EQ(means[9 * h + 1], 1);
  }
  EXPECT_EQ(launch(0, {}), o) << "a report changes no result";
}

TEST_P(CpuBranches, KeepTheDecisionOfABranch) {
  EXPECT_EQ(kernel.selection_bytes("tokens", shape), std::size_t{kHeads} * 4);
  EXPECT_EQ(kernel.selection_bytes("means", shape), 0U);
  EXPECT_EQ(kernel.selection_bytes(shape), 0U) << "of one attend";
  alignas(256) unsigned char data[256] = {};
  Selection selection(data, sizeof(data));
  const std::vector<float> all = launch(1, {}), without_first = launch(0, {});
  ASSERT_NE(all, without_first);
  const std::vector<BranchArgs> kept = {{"tokens", {}, {}, &selection}};
  EXPECT_EQ(launch(1, kept), all);
  EXPECT_EQ(selection.calls, 1);
  EXPECT_EQ(launch(0, kept), all) << "decided before";
  EXPECT_EQ(selection.calls, 0);
  EXPECT_EQ(launch(0, kept), without_first) << "decided anew";
}

TEST_P(CpuBranches, RefuseWhatDoesNotFitByTheirNames) {
  std::vector<std::int32_t> numbers(64);
  const Tensor counts(numbers.data(), i32, {1, kHeads, 2, 3});
  EXPECT_EQ(refusal({{"tokens", counts}}),
            "parts.json: error: kernel parts-tokens, argument counts: q_tiles expected 1, got 2 "
            "[E0501]\n");
  EXPECT_NE(refusal({{"token", counts}})
                .find("kernel parts, branches: expected some of tokens, "
                      "means, got token"),
            std::string::npos);
  EXPECT_NE(refusal({{"means"}, {"means"}}).find("branches: means is passed twice"),
            std::string::npos);
  alignas(256) unsigned char data[256] = {};
  Selection selection(data, 4);
  EXPECT_NE(refusal({{"tokens", {}, {}, &selection}})
                .find("kernel parts-tokens, selection.data: expected 16 bytes, got 4"),
            std::string::npos);
  EXPECT_NE(refusal({{"means", {}, {}, &selection}})
                .find("kernel parts-means, selection: expected null, got one"),
            std::string::npos);
}

TEST_P(CpuBranches, AreNamedInWhatTheKernelSays) {
  const std::string info = kernel.info_json();
  EXPECT_NE(info.find(R"("branch":"tokens")"), std::string::npos) << info;
  EXPECT_NE(info.find(R"("branch":"means","means":5)"), std::string::npos) << info;
  Status status;
  kernel.tile("token", status);
  EXPECT_NE(status.text.find("kernel parts, branch: expected one of tokens, "
                             "means, got token"),
            std::string::npos)
      << status.text;
}

/// The output of a spec over keys and values of e4m3.
std::vector<float> launch_codes(const char* text) {
  CompileOptions options{kDim, f32};
  options.kv = Kv::kE4M3;
  const v1::Kernel kernel = cpu_engine().compile(Spec::parse(text, "codes.json"), options);
  std::vector<std::uint8_t> codes(std::size_t{kHeadsKv} * kKeys * kDim);
  for (std::size_t n = 0; n < codes.size(); ++n) codes[n] = static_cast<std::uint8_t>(n * 37 % 64);
  Problem problem;
  LaunchArgs args = problem.arguments();
  args.lse = {};
  args.k = args.v = Tensor(codes.data(), e4m3, {1, kHeadsKv, kKeys, kDim});
  kernel.launch(args);
  return problem.o;
}

TEST_P(CpuBranches, TakeKeysAndValuesOfE4m3) {
  const std::vector<float> one = launch_codes(R"({"version": 1, "name": "one"})");
  const std::vector<float> two = launch_codes(R"({"version": 1, "name": "two", "branches": [
    {"name": "a", "weight": "0.25"}, {"name": "b", "weight": "0.75"}]})");
  double largest = 0, apart = 0;
  for (std::size_t n = 0; n < one.size(); ++n) {
    largest = std::max(largest, std::abs(double{one[n]}));
    apart = std::max(apart, std::abs(double{one[n]} - double{two[n]}));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(apart, 1e-5 * largest);
}

TEST(BranchArguments, AreOfSpecsWithBranches) {
  const v1::Kernel kernel = cpu_engine().compile(Spec::load(spec_path("dense")), {kDim, f32});
  Problem problem;
  LaunchArgs args = problem.arguments();
  args.branches = {{"tokens"}};
  Status status;
  kernel.launch(args, status);
  EXPECT_NE(
      status.text.find("kernel dense, branches: expected none, got 1: the spec has no branches"),
      std::string::npos)
      << status.text;
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuBranches, cpu_backends(), backend_name);

}  // namespace
}  // namespace lacuna
