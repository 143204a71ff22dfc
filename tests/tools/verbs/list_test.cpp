// list: the specs of a folder.
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

TEST(List, ShowsTheSpecsThatComeWithTheProject) {
  const CommandResult result = run_lacuna({"list", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  bool found = false;
  const auto document = parse_document(result);
  for (const auto& spec : document["specs"]) {
    if (spec["name"] != "sparge") continue;
    found = true;
    EXPECT_EQ(spec["does"], "keeps 128 x 64 by mean x mean, gates by warp, int8 and e4m3");
    EXPECT_EQ(spec["params"], (nlohmann::json{"tau", "theta", "lambda"}));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(run_lacuna({"list"}).out.find("schema"), std::string::npos);
}

TEST(List, ReportsTheSpecThatIsWrongAndShowsTheOthers) {
  const ScratchDirectory scratch;
  scratch.write("a.json", R"({"version": 1, "name": "good"})");
  scratch.write("b.json", R"({"version": 1, "nam": "bad"})");
  const CommandResult result = run_lacuna({"list", scratch.path()});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.out.find("good  every key"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("b.json"), std::string::npos) << result.err;
}

TEST(List, SaysWhenThereIsNoSuchFolder) {
  const CommandResult result = run_lacuna({"list", "/nowhere"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("/nowhere: No such file or directory"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace lacuna::tests
