// The expression parser on damaged and arbitrary text: it answers, points into the text, and what
// it accepts survives every consumer.
#include <gtest/gtest.h>

#include "tests/fuzz/targets/targets.hpp"
#include "tests/tier.hpp"

namespace lacuna {
namespace {

void check(const std::string& text, Site site) {
  try {
    fuzz::check_formula(text, site);
  } catch (const fuzz::Broken& broken) {
    FAIL() << broken.what() << "\n" << text;
  }
}

TEST(expr_fuzz, damaged_expressions) {
  test::Random random(21);
  const std::vector<std::string> pieces = {
      "(",      ")",  "[",     "]",   ",",  "and", "or", "not",  "<",
      "<=",     "==", "-",     "//",  "%",  "inf", "1e", "0.5.", "&&",
      "select", "q",  "start", "tau", "\"", "\n",  "\\", "\xff", "9999999999"};
  for (int n = 0; n < test::draws(20000); ++n) {
    const Site site = all_sites()[static_cast<std::size_t>(n % 5)].site;
    std::string text = test::RandomExpr(random, site, {}).text(1 + n % 4);
    for (int edits = random.between(1, 4); edits > 0; --edits) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<int>(text.size()) + 1));
      switch (random.below(3)) {
        case 0:
          text.erase(at, static_cast<std::size_t>(random.between(1, 5)));
          break;
        case 1:
          text.insert(at, " " + random.pick(pieces) + " ");
          break;
        default:
          text.insert(at, random.pick(pieces));
          break;
      }
    }
    ASSERT_NO_FATAL_FAILURE(check(text, site));
  }
}

TEST(expr_fuzz, arbitrary_bytes) {
  test::Random random(22);
  for (int n = 0; n < test::draws(20000); ++n) {
    std::string text(static_cast<std::size_t>(random.below(40)), ' ');
    for (char& c : text) c = static_cast<char>(random.below(random.chance(80) ? 128 : 256));
    ASSERT_NO_FATAL_FAILURE(check(text, Site::kMask));
  }
}

TEST(expr_fuzz, long_and_deep_texts_end_quickly_with_an_answer) {
  const auto repeated = [](const std::string& piece, int count) {
    std::string text;
    for (int n = 0; n < count; ++n) text += piece;
    return text;
  };
  for (const char* piece :
       {"(", "-", "not ", "min(", "start[", "q<", "q+", "select(q<k,", ")", "1 "}) {
    for (const int count : {150, 1500, 100000}) {
      const std::string text = repeated(piece, count);
      ASSERT_NO_FATAL_FAILURE(check(text + "q", Site::kMask));
    }
  }
  check(repeated("q + ", 900) + "k > 0", Site::kMask);
  check(repeated("q % (k + 1) + ", 180) + "k > 0", Site::kMask);
  check(repeated("(q - k) * ", 300) + "k > 0", Site::kMask);
}

}  // namespace
}  // namespace lacuna
