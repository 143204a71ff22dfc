// explain and bench about a group: the same plan, and results that are those of one rank.
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

CommandResult explain(const std::string& spec, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"explain", source_file("specs/" + spec + ".json"),
                                        "--shape", "h=32,h_kv=8,n=32768"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_lacuna(arguments);
}

TEST(GroupVerbs, ExplainShowsEachSchemeAndTheOneTaken) {
  const auto plan =
      parse_document(explain("streaming", {"--gpus", "4", "--json"}))["plans"][0]["group"];
  EXPECT_EQ(plan["ranks"], 4);
  EXPECT_EQ(plan["layout"], "contiguous");
  ASSERT_EQ(plan["schemes"].size(), 3u);
  for (const auto& scheme : plan["schemes"]) {
    EXPECT_EQ(scheme["sent_bytes_total"], scheme["least_bytes_total"]);
    EXPECT_LE(plan["efficiency"].get<double>(), 1.0);
  }
  const CommandResult text = explain("streaming", {"--gpus", "4", "--layout", "striped"});
  EXPECT_NE(text.out.find("On 4 ranks, layout striped"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("Taken: "), std::string::npos) << text.out;
}

/// One plan, of the work of all branches, behind those of each.
TEST(GroupVerbs, BranchesShareTheRowsOfARank) {
  const auto document = parse_document(explain("nsa", {"--gpus", "4", "--json"}));
  ASSERT_EQ(document["plans"].size(), 3u);
  EXPECT_FALSE(document["plans"][0].contains("group"));
  const auto& plan = document["plans"][2]["group"];
  EXPECT_EQ(plan["ranks"], 4);
  EXPECT_GT(plan["one_gpu_us"].get<double>(), 10000);  // of the window alone a few hundred
  // Means of queries lie on one rank.
  const auto pooled = parse_document(explain("vsa", {"--gpus", "4", "--json"}));
  EXPECT_EQ(pooled["plans"][1]["group"]["ranks"], 4);
  const CommandResult bench = run_lacuna({"bench", source_file("specs/nsa.json"), "--gpus", "2",
                                          "--shape", "h=2,h_kv=1,n=400", "--head-dim", "64",
                                          "--dtype", "f32", "--device", "cpu", "--seconds", "0.1"});
  EXPECT_NE(bench.out.find("the same bits as of one"), std::string::npos) << bench.err;
}

TEST(GroupVerbs, ExplainSaysWhyASchemeCannotBe) {
  const CommandResult text = explain("sale", {"--gpus", "2"});
  EXPECT_NE(text.out.find("Not rows: predictor.smooth takes the mean over all queries of a head"),
            std::string::npos)
      << text.out;
  const CommandResult wanted = explain("sale", {"--gpus", "2", "--scheme", "rows"});
  EXPECT_EQ(wanted.status, 1);
  EXPECT_NE(wanted.err.find("--scheme rows: predictor.smooth"), std::string::npos) << wanted.err;
}

TEST(GroupVerbs, BenchComparesAGroupWithOneRank) {
  const CommandResult result = run_lacuna({"bench",      source_file("specs/topk-blocks.json"),
                                           "--gpus",     "3",
                                           "--layout",   "striped",
                                           "--stripe",   "64",
                                           "--device",   "cpu",
                                           "--threads",  "1",
                                           "--shape",    "b=1,h=4,h_kv=2,n=512",
                                           "--head-dim", "64",
                                           "--param",    "blocks=2",
                                           "--seconds",  "0.01",
                                           "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto group = parse_document(result)["group"];
  EXPECT_EQ(group["ranks"], 3);
  EXPECT_EQ(group["same_bits"], true);
  EXPECT_EQ(group["sent_bytes"], group["least_bytes"]);
  EXPECT_GE(group["all"]["runs"], 3);
  EXPECT_GT(group["efficiency"].get<double>(), 0.0);
}

}  // namespace
}  // namespace lacuna::tests
