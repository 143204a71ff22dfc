#include "compiler/spec/json/json_layout.hpp"

#include <string_view>

#include "compiler/spec/json/json_tree.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 2;

std::string_view raw(const SourceText& source, std::size_t begin, std::size_t end) {
  return std::string_view(source.text).substr(begin, end - begin);
}

/// The key with its quotes, as written.
std::string_view key_text(const SourceText& source, const JsonNode& member) {
  return raw(source, member.key_begin, member.key_end);
}

bool is_container(const JsonNode& node) {
  return node.is(JsonNode::Kind::kObject) || node.is(JsonNode::Kind::kArray);
}

std::string on_one_line(const SourceText& source, const JsonNode& node) {
  if (!is_container(node)) return std::string(raw(source, node.begin, node.end));
  const bool object = node.is(JsonNode::Kind::kObject);
  std::string out(1, object ? '{' : '[');
  for (const JsonNode& child : node.children) {
    if (&child != &node.children.front()) out += ',';
    if (object || &child != &node.children.front()) out += ' ';
    if (object) out.append(key_text(source, child)).append(": ");
    out += on_one_line(source, child);
  }
  if (object && !node.children.empty()) out += ' ';
  return out += object ? '}' : ']';
}

/// `column` is where the value begins on its line.
void lay_out(const SourceText& source, const JsonNode& node, std::size_t indent, std::size_t column,
             std::string& out) {
  std::string line = on_one_line(source, node);
  const bool root = indent == 0;
  if (!is_container(node) || (!root && column + line.size() < kWidth)) {
    out += line;
    return;
  }
  const bool object = node.is(JsonNode::Kind::kObject);
  out += object ? "{" : "[";
  for (const JsonNode& child : node.children) {
    const std::string key = object ? std::string(key_text(source, child)) + ": " : "";
    if (&child != &node.children.front()) out += ',';
    out += "\n" + std::string(indent + kIndent, ' ') + key;
    lay_out(source, child, indent + kIndent, indent + kIndent + key.size(), out);
  }
  out += "\n" + std::string(indent, ' ') + (object ? "}" : "]");
}

}  // namespace

std::string layout_json(const std::string& text) {
  const SourceText source{"<memory>", text};
  Diagnostics diagnostics;
  const auto root = parse_json(source, diagnostics);
  if (!root) return text;
  std::string out;
  lay_out(source, *root, 0, 0, out);
  return out + "\n";
}

}  // namespace lacuna
