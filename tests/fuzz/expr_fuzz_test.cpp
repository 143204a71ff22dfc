// The expression parser on damaged and arbitrary text: it answers, points into the text, and what
// it accepts survives every consumer.
#include <gtest/gtest.h>

#include "compiler/expr/interval.hpp"
#include "compiler/expr/print_cuda.hpp"
#include "tests/expr/random_expr.hpp"

namespace lacuna {
namespace {

const CudaNames kNames = {
    [](Variable variable) { return std::string(info(variable).name); },
    [](const ParamSymbol& symbol) { return "args." + symbol.name; },
};

void check(const std::string& text, Site site, const test::ParameterSet& set) {
  const ParsedExpr parsed = parse_expr(text, site, set.symbols);
  ASSERT_EQ(parsed.ok(), !parsed.expr.empty()) << text;
  for (const ExprError& error : parsed.errors) {
    ASSERT_LE(error.begin, error.end) << text;
    ASSERT_LE(error.end, text.size()) << text;
    ASSERT_FALSE(error.message.empty()) << text;
  }
  if (!parsed.ok()) return;
  ASSERT_EQ(parse_expr(print_expr(parsed.expr), site, set.symbols).expr, parsed.expr) << text;
  ASSERT_FALSE(print_cuda(parsed.expr, kNames).empty());
  Bindings bindings;
  bindings.parameters = set.views;
  evaluate(parsed.expr, bindings);
  if (site == Site::kMask) evaluate(classify_mask(parsed.expr).may, bindings);
}

TEST(expr_fuzz, damaged_expressions) {
  test::Random random(21);
  const auto set = test::random_parameters(random, {}, true);
  const std::vector<std::string> pieces = {
      "(",      ")",  "[",     "]",   ",",  "and", "or", "not",  "<",
      "<=",     "==", "-",     "//",  "%",  "inf", "1e", "0.5.", "&&",
      "select", "q",  "start", "tau", "\"", "\n",  "\\", "\xff", "9999999999"};
  for (int n = 0; n < 20000; ++n) {
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
    ASSERT_NO_FATAL_FAILURE(check(text, site, set));
  }
}

TEST(expr_fuzz, arbitrary_bytes) {
  test::Random random(22);
  const auto set = test::random_parameters(random, {}, true);
  for (int n = 0; n < 20000; ++n) {
    std::string text(static_cast<std::size_t>(random.below(40)), ' ');
    for (char& c : text) c = static_cast<char>(random.below(random.chance(80) ? 128 : 256));
    ASSERT_NO_FATAL_FAILURE(check(text, Site::kMask, set));
  }
}

TEST(expr_fuzz, long_and_deep_texts_end_quickly_with_an_answer) {
  test::Random random(23);
  const auto set = test::random_parameters(random, {}, true);
  const auto repeated = [](const std::string& piece, int count) {
    std::string text;
    for (int n = 0; n < count; ++n) text += piece;
    return text;
  };
  for (const char* piece :
       {"(", "-", "not ", "min(", "start[", "q<", "q+", "select(q<k,", ")", "1 "}) {
    for (const int count : {150, 1500, 100000}) {
      const std::string text = repeated(piece, count);
      ASSERT_NO_FATAL_FAILURE(check(text + "q", Site::kMask, set));
    }
  }
  check(repeated("q + ", 900) + "k > 0", Site::kMask, set);
  check(repeated("q % (k + 1) + ", 180) + "k > 0", Site::kMask, set);
  check(repeated("(q - k) * ", 300) + "k > 0", Site::kMask, set);
}

}  // namespace
}  // namespace lacuna
