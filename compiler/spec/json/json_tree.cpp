#include "compiler/spec/json/json_tree.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/diag/line_table.hpp"
#include "compiler/spec/json/json_limits.hpp"

namespace lacuna {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

/// Accepts any JSON and keeps the first error with its position.
struct SyntaxCheck : nlohmann::json_sax<nlohmann::json> {
  std::size_t position = 0;  ///< bytes read when the error was found
  std::string token, message;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t at, const std::string& last_token,
                   const nlohmann::json::exception& error) override {
    position = at;
    token = last_token;
    message = error.what();
    return false;
  }
};

/// "[json...] parse error at line 1, column 2: syntax error while parsing value - unexpected '}';
/// expected ..." -> "unexpected '}'; expected ... (while parsing value)".
std::string without_position(std::string message) {
  if (message.find("out_of_range") != std::string::npos)
    return "a number is larger than any that a computer holds (1.8e308)";
  const std::size_t context = message.find("while parsing ");
  const std::size_t dash = message.find(" - ", context);
  if (context == std::string::npos || dash == std::string::npos) return message;
  std::string text = message.substr(dash + 3);
  const std::size_t read = text.find("; last read: ");
  if (read != std::string::npos) {
    const std::size_t expected = text.find("'; expected ", read);
    const std::string rest = expected == std::string::npos ? "" : text.substr(expected + 1);
    text = text.substr(0, read) + rest;
  }
  return text + " (" + message.substr(context, dash - context) + ")";
}

/// The usual slips of those who write JavaScript or Python; `begin` == `end` at the end of input.
std::string syntax_help(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin == end) return "";
  const char found = text[begin];
  const std::size_t last =
      begin == 0 ? std::string_view::npos : text.find_last_not_of(kSpace, begin - 1);
  const char before = last == std::string_view::npos ? '\0' : text[last];
  if ((found == '}' || found == ']') && before == ',') return "remove the comma before it";
  if (found == '"' && before != ',' && before != ':') return "a comma is missing before it";
  if (found == '\n') return "a closing quote is missing in this line";
  if (found == '\'') return "strings stand in double quotes";
  if (found == '/' || found == '#') return "JSON has no comments; write \"$comment\": \"...\"";
  const std::string_view word = text.substr(begin, end - begin);
  if (word == "Infinity" || word == "inf" || word == "Inf")
    return before == '-' ? "write \"-inf\"" : "write \"inf\"";
  if (word == "NaN" || word == "nan") return "there is no value that is no number: leave it out";
  if (std::isalpha(static_cast<unsigned char>(found)) != 0)
    return "the only words outside double quotes are true, false and null";
  return "";
}

bool is_identifier_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Bytes [begin, end) to blame: a whole string, number or word, else one character.
std::pair<std::size_t, std::size_t> blamed(std::string_view text, const SyntaxCheck& check) {
  std::size_t end = check.position;
  if (end == 0 || end > text.size()) {  // end of input: just behind the last character
    const std::size_t last = text.find_last_not_of(kSpace);
    end = last == std::string_view::npos ? 0 : last + 1;
    return {end, end};
  }
  // nlohmann's token begins where its scanner does only for strings and numbers.
  const bool whole = check.message.find("unexpected string") != std::string::npos ||
                     check.message.find("unexpected number") != std::string::npos;
  if (whole) return {end - std::min(end, check.token.size()), end};
  std::size_t begin = end - 1;
  if (check.message.find("invalid string") != std::string::npos) return {begin, end};
  if (is_identifier_character(text[begin])) {
    while (begin > 0 && is_identifier_character(text[begin - 1])) --begin;
    while (end < text.size() && is_identifier_character(text[end])) ++end;
  }
  return {begin, end};
}

void report_syntax(const SourceText& source, const SyntaxCheck& check, const LineTable& lines,
                   Diagnostics& diagnostics) {
  const auto [begin, end] = blamed(source.text, check);
  Diagnostic& d = diagnostics.add({.code = Code::kJsonSyntax,
                                   .message = "not valid JSON: " + without_position(check.message),
                                   .span = lines.span(begin, end)});
  const std::string help = syntax_help(source.text, begin, end);
  if (!help.empty()) d.helps.push_back(help);
}

/// A byte order mark of UTF-16, or every second byte of the beginning 0.
bool is_utf16(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return true;
  const auto is_zero = [&](std::size_t at) { return text[at] == '\0'; };
  return text.size() >= 4 && is_zero(0) != is_zero(1) && is_zero(0) == is_zero(2) &&
         is_zero(1) == is_zero(3);
}

/// Builds the tree of a text that is known to be valid JSON without an excess.
class TreeBuilder {
 public:
  TreeBuilder(const SourceText& source, const LineTable& lines, Diagnostics& diagnostics)
      : source_(source), text_(source.text), lines_(lines), diagnostics_(diagnostics) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
  }

  JsonNode value(const std::string& pointer) {
    skip_space();
    JsonNode node;
    node.pointer = pointer;
    node.begin = at_;
    const char first = text_[at_];
    if (first == '{' || first == '[') {
      node.kind = first == '{' ? JsonNode::Kind::kObject : JsonNode::Kind::kArray;
      container(node);
    } else {
      scalar(node);
    }
    node.end = at_;
    node.span = lines_.span(node.begin, node.end);
    check_nul(node);
    return node;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  /// Reads from the opening to behind the closing bracket.
  void container(JsonNode& node) {
    const bool object = node.is(JsonNode::Kind::kObject);
    const char close = object ? '}' : ']';
    ++at_;
    skip_space();
    while (text_[at_] != close) {
      JsonNode key;
      if (object) {
        key = value(node.pointer);
        skip_space();
        ++at_;  // the colon
      }
      const std::string name = object ? escaped(key.string) : std::to_string(node.children.size());
      JsonNode child = value(node.pointer + "/" + name);
      child.key = key.string;
      child.key_span = key.span;
      child.key_begin = key.begin;
      child.key_end = key.end;
      if (object) check_duplicate(node, child);
      node.children.push_back(std::move(child));
      skip_space();
      if (text_[at_] == ',') ++at_;
      skip_space();
    }
    ++at_;
  }

  void scalar(JsonNode& node) {
    if (text_[at_] == '"') {
      for (++at_; text_[at_] != '"'; ++at_)
        if (text_[at_] == '\\') ++at_;
      ++at_;
    } else {
      at_ = std::min(text_.size(), text_.find_first_of(" \t\r\n,:]}", at_));
    }
    const nlohmann::json value = nlohmann::json::parse(text_.substr(node.begin, at_ - node.begin));
    if (value.is_string()) {
      node.kind = JsonNode::Kind::kString;
      node.string = value.get<std::string>();
    } else if (value.is_boolean()) {
      node.kind = JsonNode::Kind::kBoolean;
      node.boolean = value.get<bool>();
    } else if (value.is_number()) {
      node.number = value.get<double>();
      const bool whole = std::nearbyint(node.number) == node.number;
      node.kind = whole ? JsonNode::Kind::kInteger : JsonNode::Kind::kNumber;
    }
  }

  /// A key as a part of a JSON pointer (RFC 6901).
  static std::string escaped(std::string_view key) {
    std::string out;
    for (const char c : key) {
      if (c == '~')
        out += "~0";
      else if (c == '/')
        out += "~1";
      else
        out += c;
    }
    return out;
  }

  /// Decoded strings go to functions that take a NUL for the end.
  void check_nul(JsonNode& node) {
    const std::size_t nul = node.string.find('\0');
    if (nul == std::string::npos) return;
    node.usable = false;
    diagnostics_.add({.code = Code::kOutOfRange,
                      .message = "a string holds the character NUL",
                      .pointer = node.pointer,
                      .span = span_in_string(source_, node, nul, nul + 1)});
  }

  void check_duplicate(const JsonNode& object, JsonNode& child) {
    const JsonNode* first = object.find(child.key);
    if (first == nullptr) return;
    child.usable = false;
    diagnostics_.add({.code = Code::kDuplicateKey,
                      .message = "key \"" + child.key + "\" occurs twice",
                      .pointer = child.pointer,
                      .span = child.key_span,
                      .notes = {"the first one is in line " + std::to_string(first->key_span.line) +
                                "; most JSON readers would silently keep the last"},
                      .helps = {}});
  }

  const SourceText& source_;
  std::string_view text_;
  const LineTable& lines_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
};

/// Bytes of the text that decode to the first `count` bytes of a string; `raw` begins at its quote.
std::size_t raw_offset(std::string_view raw, std::size_t count) {
  std::size_t at = 1;
  for (std::size_t decoded = 0; decoded < count && at + 1 < raw.size();) {
    if (raw[at] != '\\') {
      ++at;
      ++decoded;
    } else if (raw[at + 1] != 'u') {
      at += 2;
      ++decoded;
    } else {
      const unsigned long unit = std::stoul(std::string(raw.substr(at + 2, 4)), nullptr, 16);
      const bool pair = unit >= 0xD800 && unit < 0xE000;  // two \u make one character of 4 bytes
      at += pair ? 12 : 6;
      decoded += pair ? 4U : unit < 0x80 ? 1U : unit < 0x800 ? 2U : 3U;
    }
  }
  return std::min(at, raw.size() - 1);
}

}  // namespace

const JsonNode* JsonNode::find(std::string_view member) const {
  for (const JsonNode& child : children)
    if (child.key == member) return &child;
  return nullptr;
}

std::optional<JsonNode> parse_json(const SourceText& source, Diagnostics& diagnostics) {
  if (source.text.size() > kMostJsonBytes) {
    diagnostics.add({.code = Code::kTooLarge,
                     .message = "the text is longer than " + std::to_string(kMostJsonBytes) +
                                " bytes; a spec has some thousand"});
    return std::nullopt;
  }
  const LineTable lines(source.text);
  const auto refuse = [&](std::size_t begin, std::size_t end, std::string message) {
    diagnostics.add(
        {.code = Code::kJsonSyntax, .message = std::move(message), .span = lines.span(begin, end)});
    return std::nullopt;
  };
  if (source.text.find_first_not_of(kSpace) == std::string::npos) {
    refuse(0, 0, "the file is empty");
    diagnostics.items.back().helps.emplace_back(
        R"(the shortest spec is {"version": 1, "name": "dense"})");
    return std::nullopt;
  }
  if (is_utf16(source.text)) {
    refuse(0, 0, "the text is UTF-16; a spec is UTF-8");
    diagnostics.items.back().helps.emplace_back("save it as UTF-8");
    return std::nullopt;
  }
  // The library takes a NUL for the end of the text.
  if (const std::size_t nul = source.text.find('\0'); nul != std::string::npos)
    return refuse(nul, nul + 1, "not valid JSON: unexpected NUL byte");
  SyntaxCheck check;
  if (!nlohmann::json::sax_parse(source.text, &check)) {
    report_syntax(source, check, lines, diagnostics);
    return std::nullopt;
  }
  if (const auto excess = find_excess(source.text))
    return refuse(excess->begin, excess->end, excess->message);
  return TreeBuilder(source, lines, diagnostics).value("");
}

Span span_in_string(const SourceText& source, const JsonNode& node, std::size_t begin,
                    std::size_t end) {
  const std::string_view raw =
      std::string_view(source.text).substr(node.begin, node.end - node.begin);
  const std::size_t first = raw_offset(raw, begin);
  const std::size_t last = std::max(first, raw_offset(raw, end));
  return {node.span.line, node.span.column + static_cast<int>(first),
          static_cast<int>(last - first)};
}

}  // namespace lacuna
