// lacuna cache on a store whose entries hold what no compiler of ours has written.
#include <gtest/gtest.h>

#include <fstream>

#include "cache/store.hpp"
#include "tests/tools/command.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tests {
namespace {

/// An intact entry with this metadata.
void publish(const std::string& directory, int number, const std::string& metadata) {
  cache::StoreOptions options;
  options.directory = directory;
  const cache::Key key =
      cache::make_key({.source_sha256 = std::to_string(number), .options = {}, .target = "sm_90a"});
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

class FilledCache : public ::testing::Test {
 protected:
  FilledCache() {
    for (int number = 1; number <= 8; ++number) publish(directory_, number, R"({"spec": "bsfa"})");
  }

  CommandResult cache(std::vector<std::string> more) const {
    more.insert(more.begin(), "cache");
    return run_lacuna(more, "", {{"LACUNA_CACHE_DIR", directory_}});
  }
  nlohmann::json list() const { return parse_document(cache({"ls", "--json"})); }
  std::uint64_t bytes() const { return list()["bytes"].get<std::uint64_t>(); }

  ScratchDirectory scratch_;
  std::string directory_ = scratch_.file("store");
};

TEST_F(FilledCache, IsListedWithItsSizes) {
  const nlohmann::json document = list();
  ASSERT_EQ(document["entries"].size(), 8u);
  std::uint64_t sum = 0;
  for (const auto& entry : document["entries"]) {
    EXPECT_EQ(entry["bytes"], read_bytes(entry["path"]).size());
    EXPECT_EQ(entry["target"], "sm_90a");
    EXPECT_EQ(entry["intact"], true);
    sum += entry["bytes"].get<std::uint64_t>();
  }
  EXPECT_EQ(document["bytes"], sum);
  const nlohmann::json& first = document["entries"][0];
  const std::string row = first["key"].get<std::string>().substr(0, 12) + "  sm_90a  bsfa  " +
                          tools::print_bytes(first["bytes"]) + "  intact\n";
  const std::string out = cache({"ls"}).out;
  EXPECT_NE(out.find(row), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with("\n8 entries, " + tools::print_bytes(sum) + "\n")) << out;
}

TEST_F(FilledCache, ADamagedEntryIsNamedAndTheStatus) {
  EXPECT_EQ(cache({"verify"}).status, 0);
  const std::string path = list()["entries"][3]["path"];
  std::string entry = read_bytes(path);
  entry[entry.size() / 2] = static_cast<char>(entry[entry.size() / 2] ^ 1);
  std::ofstream(path, std::ios::binary) << entry;
  const CommandResult result = cache({"verify"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "7 intact, 1 damaged\n");
  EXPECT_EQ(result.err, "lacuna: error: " + path + " is damaged; it will be rebuilt when needed\n");
  const nlohmann::json document = parse_document(cache({"verify", "--json"}));
  EXPECT_EQ(document["intact"], 7);
  ASSERT_EQ(document["damaged"].size(), 1u);
  EXPECT_EQ(document["damaged"][0]["path"], path);
  const std::string listed = cache({"ls"}).out;
  EXPECT_NE(listed.find("  damaged\n"), std::string::npos) << listed;
  EXPECT_EQ(listed.find("  damaged\n"), listed.rfind("  damaged\n")) << listed;
}

TEST_F(FilledCache, ShrinksToASizeOfAnyUnitAndToNothing) {
  const std::uint64_t before = bytes(), one = list()["entries"][0]["bytes"];
  ASSERT_GT(before, 1024u + one);
  EXPECT_EQ(cache({"prune", "--max-bytes", "1M"}).out, "freed 0 B\n");
  const std::string freed = cache({"prune", "--max-bytes", "1K"}).out;
  const std::uint64_t after = bytes();
  EXPECT_EQ(freed, "freed " + tools::print_bytes(before - after) + "\n");
  EXPECT_LE(after, 1024u);
  EXPECT_GT(after, 1024u - one) << "no more than has to be";
  const nlohmann::json document =
      parse_document(cache({"prune", "--max-bytes", std::to_string(one), "--json"}));
  EXPECT_EQ(document["freed_bytes"], after - one);
  EXPECT_EQ(cache({"clear"}).out, "freed " + tools::print_bytes(one) + "\n");
  EXPECT_EQ(bytes(), 0u);
}

TEST(CacheVerb, ADirectoryThatCannotBeUsedIsOfTheEnvironment) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("file", "");
  const CommandResult result =
      run_lacuna({"cache", "path", "--json"}, "", {{"LACUNA_CACHE_DIR", file}});
  EXPECT_EQ(result.status, 3);
  const nlohmann::json document = parse_document(result);
  EXPECT_EQ(document["on_disk"], false);
  EXPECT_EQ(document["diagnostics"][0]["message"],
            "no usable cache directory: kernels are kept in memory");
}

}  // namespace
}  // namespace lacuna::tests
