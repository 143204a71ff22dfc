// run, bench, calibrate and tune on a GPU whose driver takes notes and computes nothing: every
// launch, also of the dense attention that a spec is compared with, brings what its kernel asks
// for.
#include <gtest/gtest.h>

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

  CommandResult on_gpu(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--device", "cuda:0"});
    return run_lacuna(arguments, "",
                      {{"LACUNA_CACHE_DIR", scratch_.file("cache")},
                       {"LD_LIBRARY_PATH", LACUNA_BINARY_DIR "/tests/fake_cuda"}});
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

TEST_F(GpuVerbs, TuneLaunchesAndFindsThatNothingWasComputed) {
  const CommandResult result =
      on_gpu({"tune", spec_, "--shape", "b=1,h=2,n=384", "--head-dim", "64"});
  EXPECT_EQ(result.status, 4);
  EXPECT_NE(result.err.find("is wrong: element 0: "), std::string::npos) << result.err;
}

}  // namespace
}  // namespace lacuna::tests
