// Mutated program texts: the parser of the IR, which the CPU plugin feeds from outside, returns
// whatever it reads, what it accepts prints and parses back to itself, and the verifier looks at
// all of it.
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/targets/targets.hpp"
#include "tests/ir/programs.hpp"
#include "tests/spec/golden_file.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

std::vector<std::string> golden_programs() {
  std::vector<std::string> texts;
  for (const char* name : {"alibi", "bsfa", "document", "skip-softmax", "window"})
    texts.push_back(test::read_file(test::source_dir() / "tests/golden" /
                                    (std::string(name) + ".program.txt")));
  texts.emplace_back(kPredictedText);
  texts.emplace_back(kGatheredText);
  return texts;
}

void mutate(std::string& text, std::mt19937& random) {
  static const char* const kPieces[] = {"%",    "attend", "=",     "[", "]",     "\"",
                                        "-inf", "param",  "1e400", ",", "tile=", "}",
                                        "%k",   "=0",     "last(", "i8"};
  const std::size_t at = random() % (text.size() + 1);
  switch (random() % 4) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random() % 256);
      break;
    case 1:
      text.erase(at, random() % 20);
      break;
    case 2:
      text.insert(at, kPieces[random() % std::size(kPieces)]);
      break;
    default:
      text.insert(at, text.substr(random() % text.size(), random() % 40));
  }
}

TEST(ProgramFuzz, TheParserReturnsAndWhatItAcceptsRoundTrips) {
  const std::vector<std::string> texts = golden_programs();
  std::mt19937 random(2024);
  int accepted = 0;
  const int rounds = test::draws(5000);
  for (int round = 0; round < rounds; ++round) {
    std::string text = texts[random() % texts.size()];
    for (std::size_t n = random() % 4; n-- > 0 && !text.empty();) mutate(text, random);
    SCOPED_TRACE(text);
    ASSERT_NO_THROW(accepted += fuzz::run_program(text) ? 1 : 0);
  }
  EXPECT_GT(accepted, rounds / 10);
}

}  // namespace
}  // namespace lacuna
