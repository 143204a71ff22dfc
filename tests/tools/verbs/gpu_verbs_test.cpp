// run, bench, calibrate and tune on a GPU whose driver takes notes and computes nothing: every
// launch, also of the dense attention that a spec is compared with, brings what its kernel asks
// for.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"

namespace lacuna::tests {
namespace {

/// Asks for everything: a workspace, kept tiles, and the row LSE of dense attention before that.
constexpr const char* kSpec = R"({"version": 1, "name": "previous",
  "params": {"c": {"range": [0, "inf"], "default": 0.5, "calibrate": "bisect"}},
  "tile": {"q": 128, "k": 64, "order": "ascending"},
  "predictor": {
    "estimate": {"q": "tokens", "k": "tokens", "reduce": "max", "normalise": "previous_lse"},
    "keep": "p > c / n_k", "reuse": 4}})";

class GpuVerbs : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = parse_document(run_lacuna({"doctor", "--json"}))["nvrtc"];
    if (nvrtc["found"] == false) GTEST_SKIP() << "no NVRTC on this machine: " << nvrtc["missing"];
  }

  /// `more`: variables that come before those of the fixture. The fake driver says of any two
  /// events that 1.5 ms lie between them.
  CommandResult on_gpu(std::vector<std::string> arguments,
                       std::map<std::string, std::string> more = {}) const {
    arguments.insert(arguments.end(), {"--device", "cuda:0"});
    more.insert({{"LACUNA_CACHE_DIR", kernels().file("cache")},
                 {"LD_LIBRARY_PATH", LACUNA_BINARY_DIR "/tests/fake_cuda"},
                 {"LACUNA_CUBLAS_PATH", LACUNA_BINARY_DIR "/tests/fake_cublas"}});
    return run_lacuna(arguments, "", more);
  }

  CommandResult bench(std::vector<std::string> options,
                      const std::map<std::string, std::string>& more = {}) const {
    std::vector<std::string> arguments = {"bench",      spec_, "--shape",   "b=1,h=2,n=384",
                                          "--head-dim", "64",  "--seconds", "0.01"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return on_gpu(arguments, more);
  }

  /// Of all tests that do not say otherwise: their spec is the same, and takes seconds to compile.
  static const ScratchDirectory& kernels() {
    static const ScratchDirectory directory;
    return directory;
  }

  ScratchDirectory scratch_;
  std::string spec_ = scratch_.write("previous.json", kSpec);
  std::string input_ =
      scratch_.write("x.safetensors",
                     tools::print_safetensors(small_problem(2, 384, 64, tools::ArrayType::kBF16)));
};

TEST_F(GpuVerbs, GiveEveryLaunchWhatItsKernelAsksFor) {
  const std::vector<std::string> verbs[] = {
      {"run", spec_, "--input", input_},
      {"bench", spec_, "--shape", "b=1,h=2,n=384", "--head-dim", "64", "--seconds", "0.01"},
      {"calibrate", spec_, "--samples", input_, "--target", "0.5", "-o", scratch_.file("out")}};
  for (const std::vector<std::string>& verb : verbs) {
    const CommandResult result = on_gpu(verb);
    EXPECT_EQ(result.status, 0) << verb.front() << ": " << result.err;
    EXPECT_NE(result.out.find("Fake GPU 0"), std::string::npos) << result.out;
  }
}

TEST_F(GpuVerbs, RunTimesLaunchesByEvents) {
  const CommandResult result = on_gpu({"run", spec_, "--input", input_, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(parse_document(result)["time_us"],
            nlohmann::json({{"dense", 1500}, {"sparse", 1500}, {"predict", 0}, {"attend", 1500}}));
}

TEST_F(GpuVerbs, TheCacheSaysWhatAKernelWasCompiledFor) {
  const CommandResult result =
      on_gpu({"run", spec_, "--input", input_}, {{"LACUNA_CACHE_DIR", scratch_.file("cache")}});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto listed = parse_document(
      run_lacuna({"cache", "ls", "--json"}, "", {{"LACUNA_CACHE_DIR", scratch_.file("cache")}}));
  ASSERT_FALSE(listed["entries"].empty());
  const auto& metadata = listed["entries"][0]["metadata"];
  EXPECT_EQ(metadata["head_dim"], 64);
  EXPECT_EQ(metadata["dtype"], "bf16");
  EXPECT_EQ(metadata["batch"], "uniform");
}

TEST_F(GpuVerbs, BenchTimesTheKernelsOfTheSpec) {
  const CommandResult result = bench({"--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  const char* names[] = {"estimate", "compact", "order_rows", "attend"};
  ASSERT_EQ(document["kernels"].size(), std::size(names)) << document["kernels"];
  for (std::size_t n = 0; n < std::size(names); ++n) {
    const auto& kernel = document["kernels"][n];
    EXPECT_EQ(kernel["name"], names[n]);
    for (const char* key : {"low_us", "median_us", "high_us"})
      EXPECT_EQ(kernel[key], 1500.0) << key;
    EXPECT_EQ(kernel["of_dense"], 1.0);
  }
}

TEST_F(GpuVerbs, BenchComparesRatesWithGemm) {
  const CommandResult result = bench({"--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err.find("GEMM"), std::string::npos) << result.err;
  const auto document = parse_document(result);
  const double gemm_tflops = document.value("gemm_tflops", 0.0);
  EXPECT_NEAR(gemm_tflops, 2 * std::pow(8192.0, 3) / 1500e-6 * 1e-12, 0.01);
  for (const auto& launch : document["launches"])
    EXPECT_DOUBLE_EQ(launch["of_gemm"].get<double>(),
                     launch["effective_tflops"].get<double>() / gemm_tflops);
  const CommandResult text = bench({});
  for (const char* part : {"of GEMM", "of dense time", "order_rows", "GEMM: 733 TFLOP/s"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in " << text.out;
}

TEST_F(GpuVerbs, BenchDoesWithoutGemmAndSaysSo) {
  const std::string prefix = "rates are not compared with GEMM: ";
  const struct {
    const char *variable, *value;
    std::string reason;
  } cases[] = {
      {"LACUNA_CUBLAS_PATH", "/nonexistent", "LACUNA_CUBLAS_PATH=/nonexistent: nothing there"},
      {"LACUNA_CUBLAS_PATH", "/lib/x86_64-linux-gnu/libc.so.6",
       "LACUNA_CUBLAS_PATH=/lib/x86_64-linux-gnu/libc.so.6: it lacks entry points of cuBLAS 12"},
      {"FAKE_CUBLAS_STATUS", "13", ": cublasGemmEx failed with status 13"}};
  for (const auto& c : cases) {
    const CommandResult result = bench({"--json"}, {{c.variable, c.value}});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find(prefix), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(c.reason + "\n"), std::string::npos) << result.err;
    const auto document = parse_document(result);
    EXPECT_FALSE(document.contains("gemm_tflops"));
    EXPECT_FALSE(document["launches"][0].contains("of_gemm"));
  }
}

TEST_F(GpuVerbs, TuneLaunchesAndFindsThatNothingWasComputed) {
  const CommandResult result =
      on_gpu({"tune", spec_, "--shape", "b=1,h=2,n=384", "--head-dim", "64"},
             {{"LACUNA_CACHE_DIR", scratch_.file("cache")}});
  EXPECT_EQ(result.status, 4);
  EXPECT_NE(result.err.find("is wrong: element 0: "), std::string::npos) << result.err;
}

}  // namespace
}  // namespace lacuna::tests
