// Rendering of diagnostics as text and JSON, code names, suggestions.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/diag/line_table.hpp"
#include "compiler/diag/other_words.hpp"

namespace lacuna {
namespace {

Diagnostic tile_error() {
  return {.code = Code::kOutOfRange,
          .message = "tile.q = 100 is not a multiple of 16",
          .pointer = "/tile/q",
          .span = {2, 20, 3},
          .notes = {"8-bit scores use mma m16n8k32, whose tiles have 16 rows"},
          .helps = {"nearest legal values: 96, 112"}};
}

std::string render_one(const Diagnostic& diagnostic, const std::string& text, bool color = false) {
  Diagnostics diagnostics;
  diagnostics.add(diagnostic);
  return render(diagnostics, {"x.json", text}, color);
}

std::string render_at(Span span, const std::string& text) {
  return render_one({.code = Code::kOutOfRange, .message = "m", .span = span}, text);
}

TEST(Codes, NamesHaveFourDigitsAndSummaries) {
  EXPECT_EQ(code_name(Code::kJsonSyntax), "E0101");
  EXPECT_EQ(code_name(Code::kOutOfRange), "E0203");
  EXPECT_EQ(code_summary(Code::kDuplicateKey), "a key occurs twice in one object");
  EXPECT_EQ(code_subject(Code::kDuplicateKey), "JSON text");
}

TEST(Codes, EachHasACauseAnExampleAndACure) {
  for (const Code code : {
#define LACUNA_CODE(name, number, summary) Code::name,
#include "compiler/diag/codes.def"
#undef LACUNA_CODE
       }) {
    const Explanation explanation = explanation_of(code);
    for (const std::string_view text : {explanation.cause, explanation.example, explanation.cure})
      EXPECT_FALSE(text.empty()) << code_name(code);
  }
}

TEST(Codes, NumbersAreUniqueAndSorted) {
  const int numbers[] = {
#define LACUNA_CODE(name, number, summary) number,
#include "compiler/diag/codes.def"
#undef LACUNA_CODE
  };
  EXPECT_TRUE(std::is_sorted(std::begin(numbers), std::end(numbers)));
  EXPECT_EQ(std::set<int>(std::begin(numbers), std::end(numbers)).size(), std::size(numbers));
}

TEST(Render, ShowsPositionLineCaretNoteAndHelp) {
  EXPECT_EQ(render_one(tile_error(), "{\n    \"tile\": { \"q\": 100, \"k\": 64 },\n}"),
            "x.json:2:20: error: tile.q = 100 is not a multiple of 16 [E0203]\n"
            "    \"tile\": { \"q\": 100, \"k\": 64 },\n"
            "                   ^~~\n"
            "note: 8-bit scores use mma m16n8k32, whose tiles have 16 rows\n"
            "help: nearest legal values: 96, 112\n");
}

TEST(Render, WithoutPlaceHasOnlyThePath) {
  EXPECT_EQ(render_at({}, "text"), "x.json: error: m [E0203]\n");
}

TEST(Render, NamesSeverities) {
  Diagnostic d{.code = Code::kConflict, .message = "m"};
  d.severity = Severity::kWarning;
  EXPECT_EQ(render_one(d, ""), "x.json: warning: m [E0205]\n");
  d.severity = Severity::kPerf;
  EXPECT_EQ(render_one(d, ""), "x.json: perf: m [E0205]\n");
  d.severity = Severity::kNote;
  EXPECT_EQ(render_one(d, ""), "x.json: note: m [E0205]\n");
}

TEST(Render, RepeatsTabsBeforeTheCaret) {
  EXPECT_EQ(render_at({1, 3, 2}, "\t\tab"), "x.json:1:3: error: m [E0203]\n\t\tab\n\t\t^~\n");
}

TEST(Render, CountsCharactersNotBytes) {
  EXPECT_EQ(render_at({1, 4, 4}, "\"\xC3\xA9\xC3\xA9z\""),
            "x.json:1:4: error: m [E0203]\n\"\xC3\xA9\xC3\xA9z\"\n  ^~~\n");
}

TEST(Render, DropsCarriageReturnsAndControlCharacters) {
  EXPECT_EQ(render_at({1, 1, 1}, "a\x1b[2J\r\nb"), "x.json:1:1: error: m [E0203]\na?[2J\n^\n");
}

TEST(Render, DropsControlCharactersOfMessages) {
  Diagnostic d{.code = Code::kConflict, .message = "a\x1b[2J\nb", .notes = {"c\x07"}};
  EXPECT_EQ(render_one(d, ""), "x.json: error: a?[2J?b [E0205]\nnote: c?\n");
}

TEST(Render, CutsLongLinesAroundTheCaret) {
  const std::string line = std::string(200, 'x') + "HERE" + std::string(200, 'y');
  EXPECT_EQ(render_at({1, 201, 4}, line), "x.json:1:201: error: m [E0203]\n..." +
                                              std::string(50, 'x') + "HERE" + std::string(46, 'y') +
                                              "...\n" + std::string(53, ' ') + "^~~~\n");
}

TEST(Render, CutsInsideBytesThatAreNoUtf8) {
  const std::string line = "x" + std::string(260, '\x80') + std::string(200, 'y');
  EXPECT_EQ(render_at({1, 301, 1}, line), "x.json:1:301: error: m [E0203]\n..." +
                                              std::string(14, '?') + std::string(89, 'y') +
                                              "...\n" + std::string(56, ' ') + "^\n");
}

TEST(Render, SurvivesSpansBehindTheText) {
  EXPECT_EQ(render_at({7, 1, 1}, "one line"), "x.json:7:1: error: m [E0203]\n");
  EXPECT_EQ(render_at({1, 50, 9}, "abc"), "x.json:1:50: error: m [E0203]\nabc\n   ^\n");
}

TEST(LineTable, KnowsLinesByOffsetAndByNumber) {
  const LineTable lines("a\r\n\nbc\n");
  EXPECT_EQ(lines.line(1), "a");
  EXPECT_EQ(lines.line(2), "");
  EXPECT_EQ(lines.line(3), "bc");
  for (const int none : {-1, 0, 4, 5}) EXPECT_EQ(lines.line(none), "") << none;
  EXPECT_EQ(lines.span(0, 1), (Span{1, 1, 1}));
  EXPECT_EQ(lines.span(5, 6), (Span{3, 2, 1}));
  EXPECT_EQ(lines.span(4, 7), (Span{3, 1, 3}));
  EXPECT_EQ(lines.span(0, 6), (Span{1, 1, 1})) << "of several lines";
}

TEST(Render, ColorsOnlyOnRequest) {
  const std::string text = "{\n    \"tile\": { \"q\": 100, \"k\": 64 },\n}";
  EXPECT_EQ(render_one(tile_error(), text).find('\x1b'), std::string::npos);
  EXPECT_NE(render_one(tile_error(), text, true).find("\x1b[1;31merror: \x1b[0m"),
            std::string::npos);
}

TEST(RenderJson, CarriesEveryField) {
  Diagnostics diagnostics;
  diagnostics.add(tile_error());
  const auto json = nlohmann::json::parse(render_json(diagnostics, {"x.json", ""}));
  const nlohmann::json expected = {
      {"severity", "error"},
      {"code", "E0203"},
      {"message", "tile.q = 100 is not a multiple of 16"},
      {"path", "x.json"},
      {"pointer", "/tile/q"},
      {"line", 2},
      {"column", 20},
      {"length", 3},
      {"notes", {"8-bit scores use mma m16n8k32, whose tiles have 16 rows"}},
      {"helps", {"nearest legal values: 96, 112"}}};
  EXPECT_EQ(json, nlohmann::json({{"diagnostics", {expected}}}));
}

TEST(RenderJson, ReplacesBytesThatAreNoUtf8) {
  Diagnostics diagnostics;
  diagnostics.add({.code = Code::kConflict, .message = "\xFF"});
  const auto json = nlohmann::json::parse(render_json(diagnostics, {"x.json", ""}));
  EXPECT_EQ(json["diagnostics"][0]["message"], "\xEF\xBF\xBD");
}

TEST(Diagnostics, WarningsAreNoErrors) {
  Diagnostics diagnostics;
  diagnostics.add({.code = Code::kConflict, .severity = Severity::kWarning});
  EXPECT_FALSE(diagnostics.has_errors());
  diagnostics.add({.code = Code::kConflict});
  EXPECT_TRUE(diagnostics.has_errors());
}

TEST(NearestWord, FindsTypingMistakes) {
  const std::vector<std::string> words = {"threshold", "tile_max", "gap", "q0", "k0"};
  EXPECT_EQ(nearest_word("treshold", words), "threshold");
  EXPECT_EQ(nearest_word("tilemax", words), "tile_max");
  EXPECT_EQ(nearest_word("gpa", words), "gap");
  EXPECT_EQ(nearest_word("Gap", words), "gap");
}

TEST(NearestWord, SuggestsNothingForStrangers) {
  const std::vector<std::string> words = {"threshold", "gap", "q"};
  EXPECT_EQ(nearest_word("banana", words), "");
  EXPECT_EQ(nearest_word("k", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(100000, 'q'), words), "");
}

TEST(NearestWord, KnowsWhatOthersCallTheCandidates) {
  EXPECT_EQ(nearest_word("num_heads", {"batch", "heads"}), "heads");
  EXPECT_EQ(nearest_word("Float16", {"bf16", "f16", "f32"}), "f16");
  EXPECT_EQ(nearest_word("block", {"warp", "tile"}), "tile");
  EXPECT_EQ(nearest_word("qk", {"q", "s"}), "s");
  EXPECT_EQ(nearest_word("B", {"batch", "heads"}), "batch");
  EXPECT_EQ(nearest_word("block", {"blocks", "tile"}), "blocks") << "a letter says more";
  EXPECT_EQ(nearest_word("block", {"warp", "row"}), "") << "only what is a candidate";
}

TEST(OtherWords, SayHowItIsSaidHere) {
  EXPECT_EQ(said_otherwise("is_causal", WordPlace::kKey),
            "causal attention is the mask `k <= q + n_k - n_q`");
  EXPECT_EQ(said_otherwise("TopK", WordPlace::kFormula), "the best n are kept by `rank < n`");
  EXPECT_EQ(said_otherwise("banana", WordPlace::kValue), "");
  EXPECT_NE(said_otherwise("dot", WordPlace::kFormula), "");
  EXPECT_EQ(said_otherwise("dot", WordPlace::kValue), "") << "a word of formulas";
  EXPECT_NE(weights_said_otherwise("Squared-ReLU"), "");
}

TEST(NearestWord, LongWordsAreNoTypingMistakes) {
  EXPECT_EQ(nearest_word(std::string(64, 'q'), {std::string(63, 'q')}), std::string(63, 'q'));
  EXPECT_EQ(nearest_word(std::string(65, 'q'), {std::string(64, 'q')}), "");
}

}  // namespace
}  // namespace lacuna
