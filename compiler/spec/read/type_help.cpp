#include "compiler/spec/read/type_help.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

using Kind = JsonNode::Kind;

bool takes_number(SpecFieldKind kind) {
  return kind == SpecFieldKind::kInteger || kind == SpecFieldKind::kNumber ||
         kind == SpecFieldKind::kBound;
}

/// The number that a string holds, as the field takes it; "" if it holds none.
std::string number_of(const std::string& text, SpecFieldKind kind) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return "";
  constexpr double kMostDigits = 1e9;
  const bool is_whole = std::abs(value) < kMostDigits && value == std::trunc(value);
  if (kind == SpecFieldKind::kInteger && is_whole) return std::to_string(static_cast<int>(value));
  return text;
}

/// `["heads", 32]` as the text of a shape.
std::string shape_of_list(const SourceText& source, const JsonNode& node) {
  std::string text;
  for (const JsonNode& child : node.children) {
    text += text.empty() ? "" : ", ";
    text += child.is(Kind::kString) ? child.string
                                    : source.text.substr(child.begin, child.end - child.begin);
  }
  return "[" + text + "]";
}

std::string help_for_expression(const SourceText& source, const JsonNode& node) {
  if (node.is(Kind::kArray)) return "write one string; conditions are joined by `and` or `or`";
  if (node.is(Kind::kObject)) return "";
  return "write \"" + source.text.substr(node.begin, node.end - node.begin) + "\"";
}

}  // namespace

std::string type_help(const SourceText& source, const JsonNode& node, const SpecField& field) {
  if (node.is(Kind::kNull)) return "leave the field out";
  if (takes_number(field.kind) && node.is(Kind::kString)) {
    const std::string number = number_of(node.string, field.kind);
    if (!number.empty()) return "write " + number + " without quotes";
    const bool is_formula = node.string.find_first_of("()/*+") != std::string::npos;
    if (is_formula && !field.fallback.empty())
      return "no formula is read here; left out it is " + std::string(field.fallback);
  }
  if (field.kind == SpecFieldKind::kEnum) {
    const std::string text = source.text.substr(node.begin, node.end - node.begin);
    if (std::ranges::find(field.names, text) != field.names.end()) return "write \"" + text + "\"";
  }
  if (field.kind == SpecFieldKind::kBoolean && (node.is_string("true") || node.is_string("false")))
    return "write " + node.string + " without quotes";
  if (field.kind == SpecFieldKind::kSubset && node.is(Kind::kString) &&
      std::ranges::find(field.names, node.string) != field.names.end())
    return "write [\"" + node.string + "\"]";
  if (field.kind == SpecFieldKind::kShape && node.is(Kind::kArray))
    return "write \"" + shape_of_list(source, node) + "\"";
  if (field.kind == SpecFieldKind::kExpression) return help_for_expression(source, node);
  return "";
}

void shape_help(std::string_view text, Diagnostic& diagnostic) {
  std::vector<std::string> legal;
  for (const DimInfo& dim : all_dims())
    if (dim.axis != ParamAxis::kFixed) legal.emplace_back(dim.name);
  const auto is_separator = [](char c) {
    return std::string_view("[](), ").find(c) != std::string_view::npos;
  };
  std::string shape;
  for (std::size_t at = 0; at < text.size();) {
    if (is_separator(text[at])) {
      ++at;
      continue;
    }
    const auto* const end = std::find_if(text.begin() + at, text.end(), is_separator);
    const std::string word(text.begin() + at, end);
    at = static_cast<std::size_t>(end - text.begin());
    const bool is_extent = word.find_first_not_of("0123456789") == std::string::npos;
    const std::string dim = is_extent ? word : nearest_word(word, legal);
    if (dim.empty()) return;
    shape += (shape.empty() ? "[" : ", ") + dim;
  }
  std::vector<ParamDim> parsed;
  if (!shape.empty() && parse_shape(shape + "]", parsed))
    diagnostic.helps.push_back("did you mean \"" + shape + "]\"?");
}

}  // namespace lacuna
