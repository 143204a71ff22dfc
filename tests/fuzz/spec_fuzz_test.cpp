// Mutated bytes of the shipped specs: whatever the text, the reader returns, its spans lie inside
// the text, and what it accepts survives a round trip.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/fuzz/targets/targets.hpp"
#include "tests/spec/golden_file.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

std::vector<std::string> texts_of(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() / folder))
    if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) texts.push_back(test::read_file(path));
  return texts;
}

class Mutator {
 public:
  std::string next() {
    std::string text = below(4) == 0 ? one_of(bad_) : one_of(good_);
    for (std::size_t i = 0, n = 1 + below(3); i < n; ++i) mutate(text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  const std::string& one_of(const std::vector<std::string>& texts) {
    return texts[below(texts.size())];
  }

  void mutate(std::string& text) {
    static const std::vector<std::string> kPieces = {
        "{",       "}",       "[",        "]",     "\"",      ",",        ":",     "\\",
        "\\u0000", "\\ud83d", "null",     "1e308", "-0",      "\n",       "\t",    "\r",
        "(",       ")",       "inf",      "\xFF",  "\xC3",    "\"auto\"", "1e999", "\x00",
        "k",       "//",      "$comment", "[q]",   "select(", "p",        "rank",  "mean",
        "tokens",  "last(7)", "16",       "8",     "4",       "1",        "none",  "lse"};
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(12);
    switch (below(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(std::min(at, text.size()), length);
        break;
      case 2:
        text.insert(at, one_of(kPieces));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      default: {
        const std::string& other = one_of(good_);
        text.insert(at, other.substr(below(other.size() + 1), 4 * length));
      }
    }
  }

  std::vector<std::string> good_ = texts_of("specs");
  std::vector<std::string> bad_ = texts_of("tests/diagnostics");
  std::mt19937 random_{20};
};

TEST(SpecFuzz, MutatedSpecsNeverCrashTheReader) {
  Mutator mutator;
  int accepted = 0, refused = 0;
  const int texts = test::draws(20000);
  for (int i = 0; i < texts; ++i) {
    const std::string text = mutator.next();
    SCOPED_TRACE(text);
    bool is_good = false;
    ASSERT_NO_THROW(is_good = fuzz::read_and_print_spec(text));
    ++(is_good ? accepted : refused);
  }
  EXPECT_GT(accepted, texts / 40);
  EXPECT_GT(refused, texts / 40);
}

}  // namespace
}  // namespace lacuna
