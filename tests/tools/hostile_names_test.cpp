// Names of files and strings of a JSON that hold escape sequences, ends of lines and bytes that are
// no UTF-8: no verb hands them to a terminal, and --json stays JSON.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

/// ESC, CSI in one byte and in two, bell, an end of a line, DEL, half a character.
const std::string kHostile =
    "\x1b]0;t\x07\x1b[2J\x9b"
    "1m\xC2\x9B"
    "2m\nlacuna: error: x\x7f\xE2\x82";

bool is_harmless(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

class HostileNames : public testing::Test {
 protected:
  /// Both outputs, as text in color and as JSON.
  void expect_harmless(const std::vector<std::string>& arguments, const std::string& input = "") {
    const CommandResult plain = run_lacuna(arguments, input);
    EXPECT_TRUE(is_harmless(without_notes(plain.err))) << plain.err;
    EXPECT_TRUE(is_harmless(plain.out)) << plain.out;
    EXPECT_FALSE(plain.out.empty() && plain.err.empty());
    for (const std::string& text : {plain.out, plain.err})
      EXPECT_FALSE(text.starts_with("lacuna: error: x")) << text;
    EXPECT_EQ(("\n" + plain.err + plain.out).find("\nlacuna: error: x"), std::string::npos);
    std::vector<std::string> with_json = arguments;
    with_json.emplace_back("--json");
    const CommandResult json = run_lacuna(with_json, input);
    EXPECT_TRUE(is_harmless(json.out)) << json.out;
    if (json.status != 2) parse_document(json);
  }

  ScratchDirectory scratch_;
  const std::string missing_ = scratch_.file("no" + kHostile);
  const std::string spec_ =
      scratch_.write("s" + kHostile + ".json", read_bytes(source_file("specs/dense.json")));
  const std::string bad_ = scratch_.write("b" + kHostile + ".json", "{\"version\": 2}");
};

TEST_F(HostileNames, AreShownWithoutTheirControlCharacters) {
  expect_harmless({"check", spec_, bad_, missing_});
  expect_harmless({"explain", missing_});
  expect_harmless({"list", scratch_.path()});
  expect_harmless({"list", missing_});
  expect_harmless({"emit", "--form", "spec", spec_, "-o", scratch_.path()});
  expect_harmless({"emit", "--form", "cuda", spec_});
  expect_harmless({"build", spec_, spec_, "--arch", "sm_80", "-o", scratch_.file(kHostile)});
  expect_harmless({"tune", "--import", missing_});
  expect_harmless({"tune", "--import", bad_});
  expect_harmless({"run", source_file("specs/dense.json"), "--input", bad_});
  expect_harmless(
      {"run", source_file("specs/dense.json"), "--input", missing_, "--calibration", bad_});
  expect_harmless({"calibrate", source_file("specs/bsfa.json"), "--samples", bad_});
  expect_harmless({"viz", "mask", bad_, "-o", missing_});
}

TEST_F(HostileNames, OfVerbsAndFlagsAreShownLikewise) {
  expect_harmless({kHostile});
  expect_harmless({"check", "--" + kHostile});
  expect_harmless({"check", spec_, "--arch", kHostile});
  expect_harmless({"run", spec_, "--param", kHostile + "=1"});
}

TEST_F(HostileNames, StringsOfASpecAreTheSame) {
  const std::string escaped = R"(\u001b]0;t\u0007\u009b2m\u007f)";
  const std::string spec = scratch_.write(
      "doc.json", R"({"version": 1, "name": "a", "doc": ")" + escaped + R"(", "source": ")" +
                      escaped + R"(", "params": {"weight": {"default": 1, "doc": ")" + escaped +
                      R"(", "unit": ")" + escaped +
                      R"("}}, "attention": {"score": "s * weight"}})");
  EXPECT_EQ(run_lacuna({"check", spec}).status, 0);
  expect_harmless({"explain", spec});
  expect_harmless({"explain", spec, "--arch", "cpu"});
  expect_harmless({"list", scratch_.path()});
  expect_harmless({"check", "-"}, R"({"version": 1, ")" + escaped + R"(": 1, "name": ")" + escaped +
                                      R"(", "attention": {"mask": ")" + escaped + R"("}})");
}

}  // namespace
}  // namespace lacuna::tests
