// The table of summaries, and how much of the repository a summary touches.
#include "compiler/spec/summary.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace lacuna {
namespace {

namespace fs = std::filesystem;

TEST(Summary, RowsOfATileAreAsFarApartAsTheTableSays) {
  constexpr int kTile = 128;
  for (const SummaryInfo& row : all_summaries()) {
    std::vector<int> counts = legal_counts(row.kind);
    if (counts.empty()) counts.push_back(1);
    for (const int count : counts) {
      const Summary summary{row.kind, count};
      const RowTokens tokens = row_tokens(summary, kTile);
      EXPECT_LE(tokens.width, tokens.step) << name_of(summary);
      if (row.divides_tile) {
        EXPECT_EQ(kTile % tokens.step, 0) << name_of(summary);
      }
      if (are_tokens(row.kind)) {
        EXPECT_EQ(tokens.width, 1) << name_of(summary);
      }
      if (row.kind != SummaryKind::kLast) {  // which counts rows of the sequence
        EXPECT_EQ(rows_of_tile(summary, kTile) * tokens.step, kTile) << name_of(summary);
      }
    }
  }
}

TEST(Summary, AllFormsStandInOneSentence) {
  EXPECT_EQ(all_forms(), "mean, mean(n), tokens, antidiagonal(n), last(n), min_max or stride(n)");
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Files of what is shipped that know an enumerator of SummaryKind.
std::vector<std::string> files_that_name(const std::string& enumerator) {
  const std::regex word("\\b" + enumerator + "\\b");
  std::vector<std::string> files;
  for (const char* folder : {"compiler", "cache", "runtime", "tools", "templates"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(LACUNA_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cuh") continue;
      const std::string text = read_file(entry.path());
      // Other enums have enumerators of these names.
      if (text.find("SummaryKind") != std::string::npos && std::regex_search(text, word))
        files.push_back(entry.path().string());
    }
  }
  return files;
}

/// compiler/README.md, "Adding things": what a primitive of the predictor touches. A switch over
/// all kinds, or a list of them, that stands somewhere else makes the path longer. tests/primitive
/// adds one by this path.
TEST(Summary, FewFilesKnowOneOfThem) {
  constexpr std::size_t kMostFiles = 10;
  const std::string header = read_file(fs::path(LACUNA_SOURCE_DIR) / "compiler/spec/spec.hpp");
  const std::size_t begin = header.find("enum class SummaryKind"), end = header.find("};", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::regex line("\n  (k[A-Za-z]+),");
  std::size_t kinds = 0;
  for (std::sregex_iterator it(header.begin() + static_cast<std::ptrdiff_t>(begin),
                               header.begin() + static_cast<std::ptrdiff_t>(end), line);
       it != std::sregex_iterator(); ++it) {
    ++kinds;
    const std::string enumerator = (*it)[1];
    const std::vector<std::string> files = files_that_name(enumerator);
    EXPECT_GE(files.size(), 2U) << enumerator;
    // Rows of the whole sequence, and so one decision for all query tiles: no other kind is so.
    if (enumerator == "kLast") continue;
    EXPECT_LE(files.size(), kMostFiles) << enumerator << ": " << ::testing::PrintToString(files);
  }
  EXPECT_EQ(kinds, all_summaries().size());
}

}  // namespace
}  // namespace lacuna
