// The JSON tree: values, places, duplicate keys, layout.
#include "compiler/spec/json/json_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/spec/json/json_layout.hpp"
#include "compiler/spec/json/json_limits.hpp"

namespace lacuna {
namespace {

using Kind = JsonNode::Kind;

JsonNode parse(const std::string& text) {
  Diagnostics diagnostics;
  auto root = parse_json({"<memory>", text}, diagnostics);
  EXPECT_TRUE(root.has_value() && diagnostics.items.empty()) << text;
  return root.value_or(JsonNode{});
}

std::string errors_of(const std::string& text) {
  const SourceText source{"x", text};
  Diagnostics diagnostics;
  parse_json(source, diagnostics);
  return render(diagnostics, source);
}

TEST(JsonTree, KnowsKindsAndValues) {
  const JsonNode root = parse(R"([null, true, 16, 16.0, -2.5e-1, "a\n\u00e9", {}, []])");
  const Kind kinds[] = {Kind::kNull,   Kind::kBoolean, Kind::kInteger, Kind::kInteger,
                        Kind::kNumber, Kind::kString,  Kind::kObject,  Kind::kArray};
  ASSERT_EQ(root.children.size(), std::size(kinds));
  for (std::size_t i = 0; i < std::size(kinds); ++i) EXPECT_EQ(root.children[i].kind, kinds[i]);
  EXPECT_TRUE(root.children[1].boolean);
  EXPECT_EQ(root.children[3].number, 16);
  EXPECT_EQ(root.children[4].number, -0.25);
  EXPECT_EQ(root.children[5].string, "a\n\xC3\xA9");
}

TEST(JsonTree, KnowsThePlaceOfEveryKeyAndValue) {
  const JsonNode root = parse("{ \"tile\" :\n\t{ \"q\": [64, 128] },\n  \"n\": \"x\" }");
  const JsonNode& tile = *root.find("tile");
  EXPECT_EQ(root.span, (Span{1, 1, 1}));  // of several lines: its bracket
  EXPECT_EQ(tile.key_span, (Span{1, 3, 6}));
  EXPECT_EQ(tile.span, (Span{2, 2, 18}));
  EXPECT_EQ(tile.find("q")->span, (Span{2, 9, 9}));
  EXPECT_EQ(tile.find("q")->children[1].span, (Span{2, 14, 3}));
  EXPECT_EQ(tile.find("q")->children[1].pointer, "/tile/q/1");
  EXPECT_EQ(root.find("n")->span, (Span{3, 8, 3}));
}

TEST(JsonTree, EscapesPointers) {
  const JsonNode root = parse(R"({"a/b~c": 1})");
  EXPECT_EQ(root.children[0].pointer, "/a~1b~0c");
}

TEST(JsonTree, SkipsAByteOrderMark) {
  const JsonNode root = parse("\xEF\xBB\xBF{\"a\": 1}");
  EXPECT_EQ(root.find("a")->span.column, 10);  // columns count bytes
}

TEST(JsonTree, MarksTheLaterDuplicateUnusable) {
  Diagnostics diagnostics;
  const auto root = parse_json({"x", R"({"a": 1, "\u0061": 2})"}, diagnostics);
  ASSERT_TRUE(root);
  EXPECT_EQ(diagnostics.items.at(0).code, Code::kDuplicateKey);
  EXPECT_TRUE(root->children[0].usable);
  EXPECT_FALSE(root->children[1].usable);
  EXPECT_EQ(root->find("a")->number, 1);
}

TEST(JsonTree, SameKeyInOtherObjectsIsNoDuplicate) { parse(R"([{"a": 1}, {"a": {"a": 2}}])"); }

TEST(JsonTree, RefusesBytesThatAreNoUtf8) {
  EXPECT_NE(errors_of("{\"a\": \"\xFF\"}").find("[E0101]"), std::string::npos);
}

TEST(JsonTree, RefusesNulBytesWhereTheyStand) {
  using namespace std::string_literals;
  EXPECT_EQ(errors_of("{\"a\": 1}\n\0junk"s),
            "x:2:1: error: not valid JSON: unexpected NUL byte [E0101]\n?junk\n^\n");
  EXPECT_EQ(errors_of("{\"a\0\": 1}"s).substr(0, 15), "x:1:4: error: n");
}

TEST(JsonTree, RefusesStringsThatHoldANul) {
  EXPECT_EQ(errors_of(R"({"a": "b\\u0000\u0000"})"),
            "x:1:16: error: a string holds the character NUL [E0203]\n"
            "{\"a\": \"b\\\\u0000\\u0000\"}\n               ^~~~~~\n");
  EXPECT_EQ(errors_of(R"({"a\u0000": 1})").substr(0, 15), "x:1:4: error: a");
}

TEST(JsonTree, RefusesWhatNoSpecNeeds) {
  EXPECT_EQ(errors_of(std::string(kMostJsonBytes + 1, '\n')),
            "x: error: the text is longer than 1048576 bytes; a spec has some thousand [E0608]\n");
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  std::string many = "[{\"a\": 0}, [ ]";  // 3 and the list itself
  for (int i = 5; i <= 10000; ++i) many += ",\"[,]\"";
  parse(many + "]");
  EXPECT_EQ(first_line(errors_of(many + ",\n0]")),
            "x:1:" + std::to_string(many.size() + 1) +
                ": error: the text has more than 10000 values [E0101]");
  const std::string key(256, 'k');
  parse("{\"" + key + "\": 0}");
  EXPECT_EQ(first_line(errors_of("{\"k" + key + "\": 0}")),
            "x:1:3: error: a key is longer than 256 bytes [E0101]");
}

TEST(JsonTree, MapsPlacesInsideStringsThroughEscapes) {
  // decoded: a " é 😀 b
  const std::string text = R"(["a\"\u00e9\ud83d\ude00b"])";
  const SourceText source{"x", text};
  const JsonNode string = parse(text).children[0];
  ASSERT_EQ(string.string,
            "a\"\xC3\xA9\xF0\x9F\x98\x80"
            "b");
  EXPECT_EQ(span_in_string(source, string, 0, 1), (Span{1, 3, 1}));    // a
  EXPECT_EQ(span_in_string(source, string, 1, 2), (Span{1, 4, 2}));    // \"
  EXPECT_EQ(span_in_string(source, string, 2, 4), (Span{1, 6, 6}));    // \u00e9
  EXPECT_EQ(span_in_string(source, string, 4, 8), (Span{1, 12, 12}));  // the pair
  EXPECT_EQ(span_in_string(source, string, 8, 9), (Span{1, 24, 1}));   // b
  EXPECT_EQ(span_in_string(source, string, 9, 9), (Span{1, 25, 0}));   // the end
  EXPECT_EQ(span_in_string(source, string, 9, 99), (Span{1, 25, 0}));
}

TEST(JsonLayout, PutsOnOneLineWhatFits) {
  EXPECT_EQ(layout_json(R"({"a":[1,2,{}],"b":{"c":"x: {\"y\"}"}})"),
            "{\n  \"a\": [1, 2, {}],\n  \"b\": { \"c\": \"x: {\\\"y\\\"}\" }\n}\n");
}

TEST(JsonLayout, BreaksWhatDoesNotFit) {
  const std::string word(60, 'x');
  EXPECT_EQ(layout_json("{\"a\":[\"" + word + "\",\"" + word + "\"]}"),
            "{\n  \"a\": [\n    \"" + word + "\",\n    \"" + word + "\"\n  ]\n}\n");
}

TEST(JsonLayout, IsStable) {
  const std::string once = layout_json(R"({"a":[1,2,{}],"b":{"c":"x"}})");
  EXPECT_EQ(layout_json(once), once);
}

}  // namespace
}  // namespace lacuna
