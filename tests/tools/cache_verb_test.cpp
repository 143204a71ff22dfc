// lacuna cache on a store whose entries hold what no compiler of ours has written.
#include <gtest/gtest.h>

#include "cache/store.hpp"
#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

/// An intact entry with this metadata.
void publish(const std::string& directory, int number, const std::string& metadata) {
  cache::StoreOptions options;
  options.directory = directory;
  const cache::Key key = cache::make_key({.source_sha256 = std::to_string(number),
                                          .options = {},
                                          .target = "sm_90a",
                                          .compiler = "NVRTC 13.0"});
  std::string cubin(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  cubin.resize(64, '\0');
  cubin[18] = static_cast<char>(190);
  ASSERT_TRUE(cache::Store(options).publish(key, {key.text, metadata, "", {cubin}}));
}

TEST(CacheVerb, ListsEntriesWhateverTheirMetadata) {
  const ScratchDirectory scratch;
  const std::string directory = scratch.file("store");
  const std::string brackets(200'000, '[');
  publish(directory, 1,
          R"({"spec": "deep", "more": )" + brackets + std::string(200'000, ']') + "}");
  publish(directory, 2, brackets);
  publish(directory, 3, R"({"spec": 3, "kernels": [{"name": "attend"}]})");
  const std::map<std::string, std::string> variables = {{"LACUNA_CACHE_DIR", directory}};
  const CommandResult plain = run_lacuna({"cache", "ls"}, "", variables);
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_NE(plain.out.find("deep"), std::string::npos) << plain.out;
  const CommandResult listed = run_lacuna({"cache", "ls", "--json"}, "", variables);
  EXPECT_EQ(listed.status, 0) << listed.err;
  const nlohmann::json entries = parse_document(listed)["entries"];
  ASSERT_EQ(entries.size(), 3u);
  bool is_whole = false;
  for (const auto& entry : entries)
    is_whole |= entry["metadata"] ==
                nlohmann::json::parse(R"({"spec": 3, "kernels": [{"name": "attend"}]})");
  EXPECT_TRUE(is_whole);
}

}  // namespace
}  // namespace lacuna::tests
