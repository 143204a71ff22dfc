// The corpora of the fuzzers, each of which once found a path or a bug, run as ordinary tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/fuzz/targets/targets.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

std::filesystem::path corpora() { return test::source_dir() / "tests/fuzz/corpus"; }

class Corpus : public testing::TestWithParam<fuzz::FuzzTarget> {};

TEST_P(Corpus, BreaksNothing) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(corpora() / GetParam().name))
    paths.push_back(file.path());
  std::ranges::sort(paths);
  std::size_t accepted = 0;
  for (const auto& path : paths) {
    SCOPED_TRACE(path.string());
    try {
      accepted += GetParam().run(test::read_file(path)) ? 1 : 0;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(accepted, 0u) << "a corpus without anything good leads nowhere";
  EXPECT_GT(paths.size(), accepted) << "a corpus without anything bad tests no error";
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus,
                         testing::ValuesIn(fuzz::targets().begin(), fuzz::targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Corpora, AreThoseOfTheTargets) {
  std::set<std::string> names, folders;
  for (const fuzz::FuzzTarget& target : fuzz::targets()) names.emplace(target.name);
  for (const auto& folder : std::filesystem::directory_iterator(corpora()))
    folders.insert(folder.path().filename().string());
  EXPECT_EQ(folders, names);
}

}  // namespace
}  // namespace lacuna
