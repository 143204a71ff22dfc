// Specs with branches on the command line: what shows all of them, and what is of one attend alone.
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"

namespace lacuna::tests {
namespace {

const std::string kNsa = source_file("specs/nsa.json");

TEST(BranchesVerbs, ExplainShowsAPlanForEach) {
  const CommandResult result =
      run_lacuna({"explain", kNsa, "--json", "--shape", "b=1,h=4,h_kv=1,n=4096"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto plans = parse_document(result)["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["branch"], "compressed");
  EXPECT_EQ(plans[1]["branch"], "selected");
  EXPECT_EQ(plans[2]["branch"], "window");
}

TEST(BranchesVerbs, EmitPrintsAllOrTheOneAskedFor) {
  const CommandResult all = run_lacuna({"emit", "--stage", "program", kNsa});
  ASSERT_EQ(all.status, 0) << all.err;
  for (const char* program : {"@nsa-compressed(", "@nsa-selected(", "@nsa-window("})
    EXPECT_NE(all.out.find(program), std::string::npos) << program;
  const CommandResult one = run_lacuna({"emit", "--stage", "program", kNsa, "--branch", "window"});
  EXPECT_EQ(one.out.find("program @nsa-window("), 0U) << one.out;
  const CommandResult none = run_lacuna({"emit", "--stage", "ptx", kNsa});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("--branch: "), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("compressed"), std::string::npos) << none.err;
}

TEST(BranchesVerbs, RunMeasuresAllAndKnowsNoTiles) {
  const ScratchDirectory scratch;
  const std::string input =
      scratch.write("x.safetensors",
                    tools::print_safetensors(small_problem(2, 300, 64, tools::ArrayType::kBF16)));
  const std::vector<std::string> run = {"run", kNsa, "--device", "cpu", "--input", input, "--json"};
  const CommandResult result = run_lacuna(run);
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  EXPECT_EQ(document["branches"], nlohmann::json({"compressed", "selected", "window"}));
  EXPECT_FALSE(document.contains("tiles"));
  EXPECT_EQ(document["o_not_finite"], 0);
  std::vector<std::string> with_mask = run;
  with_mask.insert(with_mask.end(), {"--mask-out", scratch.file("mask.npy")});
  const CommandResult refused = run_lacuna(with_mask);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.out.find("--mask-out: expected a spec of one attend"), std::string::npos)
      << refused.out << refused.err;
}

TEST(BranchesVerbs, WhatIsOfOneAttendIsRefusedByThePlace) {
  const std::vector<std::string> verbs[] = {{"bench", kNsa, "--device", "cpu"},
                                            {"tune", kNsa, "--device", "cpu"},
                                            {"calibrate", kNsa, "--device", "cpu"},
                                            {"viz", "compare", kNsa, "--device", "cpu"}};
  for (const std::vector<std::string>& verb : verbs) {
    const CommandResult result = run_lacuna(verb);
    EXPECT_NE(result.status, 0) << verb[0];
    EXPECT_NE(
        result.err.find("nsa.json:22:15: error: branches: expected a spec of one attend here"),
        std::string::npos)
        << verb[0] << ": " << result.err;
  }
  const CommandResult batch =
      run_lacuna({"build", kNsa, "--arch", "sm_90a", "--batch", "pages", "-o", "unused"});
  EXPECT_NE(batch.status, 0);
  EXPECT_NE(batch.err.find("branches: expected a batch of one length, got pages"),
            std::string::npos)
      << batch.err;
}

}  // namespace
}  // namespace lacuna::tests
