// Whatever a name or a string holds, no terminal is driven by it.
#include "compiler/diag/printable.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {
namespace {

TEST(Printable, LeavesTextOfAnyLanguage) {
  for (const char* text :
       {"", "a b~\t", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xC2\xA0"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ReplacesEachByteOfControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2J\r\n\x7f"), "a?[2J???");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "??31m")
      << "CSI of Latin-1";
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "exe"),
            "???exe")
      << "right to left";
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

TEST(Printable, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m")
      << "CSI of eight bits";
  EXPECT_EQ(printable("\x80\xBF\xFE\xFF"), "????");
  EXPECT_EQ(printable("\xC0\x9B"), "??") << "longer than needed";
  EXPECT_EQ(printable("\xE0\x82\x9B"), "???") << "longer than needed";
  EXPECT_EQ(printable("\xED\xA0\x80"), "???") << "half of a pair of UTF-16";
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "????") << "beyond the last";
  EXPECT_EQ(printable("\xE2\x82"), "??") << "cut";
  EXPECT_EQ(printable("\xE2\x82"
                      "a"),
            "??a");
}

TEST(Printable, KeepsLinesOnRequest) { EXPECT_EQ(printable_lines("a\n\tb\r\x1b\n"), "a\n\tb??\n"); }

TEST(RenderJson, IsAsciiWithoutControlCharacters) {
  Diagnostics diagnostics;
  diagnostics.add({.code = Code::kConflict, .message = "m\x1b\xC2\x9B\x7f\x9b"});
  const std::string text = render_json(diagnostics, {"p\xC2\x9B\xFF\x1b", ""});
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << text;
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["diagnostics"][0]["path"], "p\xC2\x9B\xEF\xBF\xBD\x1b");
}

}  // namespace
}  // namespace lacuna
