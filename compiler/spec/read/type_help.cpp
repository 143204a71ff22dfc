#include "compiler/spec/read/type_help.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler/diag/other_words.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/table/bands.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

using Kind = JsonNode::Kind;

bool takes_number(SpecFieldKind kind) {
  return kind == SpecFieldKind::kInteger || kind == SpecFieldKind::kNumber ||
         kind == SpecFieldKind::kBound;
}

/// The number that a string holds, as the field takes it; "" if it holds none that JSON can write.
std::string number_of(const std::string& text, SpecFieldKind kind) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return "";
  if (!std::isfinite(value)) return "";
  constexpr double kMostDigits = 1e9;
  const bool is_whole = std::abs(value) < kMostDigits && value == std::trunc(value);
  if (kind == SpecFieldKind::kInteger && is_whole) return std::to_string(static_cast<int>(value));
  return text;
}

std::string text_of(const SourceText& source, const JsonNode& node) {
  return source.text.substr(node.begin, node.end - node.begin);
}

/// `["heads", 32]` as the text of a shape.
std::string shape_of_list(const SourceText& source, const JsonNode& node) {
  std::string text;
  for (const JsonNode& child : node.children) {
    text += text.empty() ? "" : ", ";
    text += child.is(Kind::kString) ? child.string : text_of(source, child);
  }
  return "[" + text + "]";
}

/// `[0, 32]` as a band; pairs in a list as several.
std::string help_for_bands(const SourceText& source, const JsonNode& node) {
  std::string text;
  const auto add = [&](const JsonNode& first, const JsonNode& end) {
    text += (text.empty() ? "" : ",") + text_of(source, first) + ":" + text_of(source, end);
  };
  const bool is_pair = node.children.size() == 2 && !node.children[0].is(Kind::kArray);
  if (is_pair) add(node.children[0], node.children[1]);
  for (const JsonNode& child : node.children)
    if (child.is(Kind::kArray) && child.children.size() == 2)
      add(child.children[0], child.children[1]);
  return text.empty() ? "" : "write \"" + text + "\"";
}

/// A number in the place of a condition.
std::string help_for_condition(const SourceText& source, const JsonNode& node,
                               const SpecField& field) {
  const std::string number = text_of(source, node);
  if (field.site == Site::kKeep && node.is(Kind::kInteger) && node.number > 0)
    return "to keep the best " + number + ": write \"rank < " + number + "\"";
  if (field.site == Site::kKeep && node.number > 0 && node.number <= 1)
    return "to keep a share of the mass: write \"mass_before < " + number + "\"";
  const std::string variable = field.site == Site::kKeep      ? "p"
                               : field.site == Site::kGate    ? "tile_max"
                               : field.site == Site::kExclude ? "j"
                                                              : "k";
  return "a condition compares: \"" + variable + " < " + number + "\"";
}

std::string help_for_expression(const SourceText& source, const JsonNode& node,
                                const SpecField& field) {
  const bool is_condition = info(field.site).yields == ExprType::kBool;
  if (node.is(Kind::kArray))
    return is_condition ? "write one string; conditions are joined by `and` or `or`"
                        : "write one formula in a string";
  if (node.is(Kind::kObject)) return "";
  const bool is_open = !info(field.site).yields;  // a number or a condition
  if (node.is(Kind::kBoolean) && !is_condition && !is_open)
    return node.boolean ? "write a number in a string: \"0\"" : "leave the field out";
  if (!node.is(Kind::kBoolean) && is_condition) return help_for_condition(source, node, field);
  return "write \"" + text_of(source, node) + "\"";
}

/// A text in the place of a default or a bound: others' words for infinity.
std::string help_for_bound(const std::string& text) {
  double value = 0;
  const std::string digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_infinite =
      error == std::errc() && end == digits.data() + digits.size() && std::isinf(value);
  if (std::isnan(value)) return "there is no value that is no number: leave it out";
  if (is_infinite) return value > 0 ? "write \"inf\"" : "write \"-inf\"";
  return "no formula is read here";
}

bool is_number(const JsonNode& node) { return node.is(Kind::kInteger) || node.is(Kind::kNumber); }

}  // namespace

std::string type_help(const SourceText& source, const JsonNode& node, const SpecField& field) {
  if (node.is(Kind::kNull)) return "leave the field out";
  if (takes_number(field.kind) && node.is(Kind::kString)) {
    const std::string number = number_of(node.string, field.kind);
    if (!number.empty()) return "write " + number + " without quotes";
    if (field.kind == SpecFieldKind::kBound) return help_for_bound(node.string);
    const bool is_formula = node.string.find_first_of("()/*+") != std::string::npos;
    if (field.kind == SpecFieldKind::kNumber || is_formula) {
      if (field.fallback.empty()) return "no formula is read here";
      return "no formula is read here; left out it is " + std::string(field.fallback);
    }
    if (node.is_string("auto")) return "\"auto\" stands alone, and not in a list";
    if (!field.values.empty()) {  // the name of a format, say: `doc` tells which number that is
      const std::string_view doc = field.doc.substr(0, field.doc.size() - 1);  // without its period
      return "legal values: " + integers_text(field) + " (" + std::string(doc) + ")";
    }
  }
  if (field.kind == SpecFieldKind::kBound && node.is(Kind::kArray))
    return "one number stands for all elements; a table comes with each launch: leave it out";
  if (field.kind == SpecFieldKind::kInteger && node.is(Kind::kNumber))
    return "nearest legal: " + joined_integers(nearest_legal(field, node.number));
  if (field.kind == SpecFieldKind::kEnum) {
    const std::string text = source.text.substr(node.begin, node.end - node.begin);
    if (std::ranges::find(field.names, text) != field.names.end()) return "write \"" + text + "\"";
  }
  if (field.kind == SpecFieldKind::kBoolean && (node.is_string("true") || node.is_string("false")))
    return "write " + node.string + " without quotes";
  if (field.kind == SpecFieldKind::kSubset && node.is(Kind::kString) &&
      std::ranges::find(field.names, node.string) != field.names.end())
    return "write [\"" + node.string + "\"]";
  if (field.kind == SpecFieldKind::kSubset && node.is(Kind::kBoolean))
    return node.boolean ? "write [" + joined_names(field.names) + "], or some of these"
                        : "leave the field out";
  if (field.kind == SpecFieldKind::kBands && node.is(Kind::kArray))
    return help_for_bands(source, node);
  if (field.kind == SpecFieldKind::kBands && is_number(node))
    return "write \"0:" + text_of(source, node) + "\"";
  if (field.kind == SpecFieldKind::kShape && node.is(Kind::kArray))
    return "write \"" + shape_of_list(source, node) + "\"";
  if (field.kind == SpecFieldKind::kRange && node.is(Kind::kArray) && node.children.size() == 1)
    return "write [" + text_of(source, node.children[0]) + ", \"inf\"], or [\"-inf\", " +
           text_of(source, node.children[0]) + "]";
  if (field.kind == SpecFieldKind::kExpression) return help_for_expression(source, node, field);
  return "";
}

std::string object_help(const SourceText& source, const JsonNode& node, const std::string& path,
                        const std::vector<std::string>& keys) {
  const std::string text = text_of(source, node);
  const bool is_tile = path == "tile" || path.ends_with(".tile");
  if (is_number(node) && path.starts_with("params.")) return "write { \"default\": " + text + " }";
  if (is_number(node) && is_tile) return "write { \"q\": " + text + ", \"k\": " + text + " }";
  if (is_tile && node.is(Kind::kArray) && node.children.size() == 2)
    return "write { \"q\": " + text_of(source, node.children[0]) +
           ", \"k\": " + text_of(source, node.children[1]) + " }";
  if (node.is_string("auto") && is_tile) return "leave the field out";
  if (node.is(Kind::kNull)) return "leave the field out";
  if (path == "params") {
    const JsonNode* first = node.children.empty() ? nullptr : &node.children[0];
    const JsonNode* name = first == nullptr ? nullptr : first->find("name");
    const bool has_name = name != nullptr && name->is(Kind::kString);
    return "names are keys: write { \"" + (has_name ? name->string : "window") + "\": { ... } }";
  }
  if (path == "let") return "names are keys: write { \"distance\": \"q + n_k - n_q - k\" }";
  if (path == "predictor.estimate" && parse_summary(text.substr(1, text.size() - 2)))
    return "write { \"q\": " + text + ", \"k\": " + text + " }";
  if (path == "quantise" && text.find('8') != std::string::npos)
    return "write { \"qk\": { \"bits\": 8 } }";
  if (path == "gate" && node.is(Kind::kArray))
    return "there is one gate: its conditions are joined by `and` or `or`";
  if (path.starts_with("quantise.") && text.find('8') != std::string::npos)
    return "write { \"bits\": 8 }";
  return "an object with keys of its own: " + joined_keys(keys);
}

std::string branches_help(const JsonNode& node) {
  std::string text;
  for (const JsonNode& child : node.children)
    text += (text.empty() ? "" : ", ") + std::string("{ \"name\": \"") + child.key + "\", ... }";
  return "write [" + text + "]";
}

std::string value_said_otherwise(const SpecField& field, const std::string& text) {
  return field.path == "attention.normalise" ? weights_said_otherwise(text)
                                             : said_otherwise(text, WordPlace::kValue);
}

void name_help(const std::string& text, Diagnostic& diagnostic) {
  std::string name;
  for (const char c : text) {
    const bool is_legal = is_spec_name("a" + std::string(1, c));
    if (is_legal || !name.empty()) name += is_legal ? c : '-';
  }
  name = name.substr(0, name.find_last_not_of('-') + 1);
  if (is_spec_name(name)) diagnostic.helps.push_back("such as \"" + name + "\"");
}

std::string nearest_param_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += is_param_name("a" + std::string(1, c)) ? c : '_';
  if (!name.empty() && !is_param_name(name)) name.insert(0, "_");
  const bool says_something = name.find_first_not_of('_') != std::string::npos;
  return says_something && is_param_name(name) ? name : "";
}

void counts_help(const std::string& text, const SummaryInfo& row, Diagnostic& diagnostic) {
  diagnostic.helps.push_back("legal values of n: " + std::string(row.counts));
  const std::size_t digit = text.find_first_of("0123456789");
  int count = 0;
  if (digit == std::string::npos ||
      std::from_chars(text.data() + digit, text.data() + text.size(), count).ec != std::errc())
    return;
  int below = 0, above = 0;
  for (const int legal : legal_counts(row.kind)) {
    if (legal < count) below = legal;
    if (legal > count && above == 0) above = legal;
  }
  std::string nearest;
  for (const int legal : {below, above})
    if (legal != 0)
      nearest += (nearest.empty() ? "\"" : ", \"") + std::string(row.name) + "(" +
                 std::to_string(legal) + ")\"";
  diagnostic.helps.back() = "nearest legal: " + nearest;
}

std::string bands_help(std::string_view text) {
  std::string bands;
  for (std::size_t at = 0; at < text.size();) {
    int numbers[2] = {-1, -1};
    for (int& number : numbers) {
      while (at < text.size() && (text[at] < '0' || text[at] > '9')) ++at;
      const auto [end, error] =
          std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (error != std::errc()) break;
      at = static_cast<std::size_t>(end - text.data());
    }
    if (numbers[1] < 0 || numbers[1] > kMostBandDims) break;
    const int first = numbers[0] / kBandStep * kBandStep;
    const int end = (numbers[1] + kBandStep - 1) / kBandStep * kBandStep;
    bands += (bands.empty() ? "" : ",") + std::to_string(first) + ":" + std::to_string(end);
  }
  if (!bands.empty() && band_steps(bands)) return "nearest legal value: \"" + bands + "\"";
  return "such as \"0:32\" or \"0:32,64:96\"";
}

namespace {

/// What is wrong with the dimensions of a shape that no word in it explains; "" if nothing is
/// known.
std::string dimensions_help(std::string_view text) {
  if (text == "()" || text == "[]" || text.empty()) return "without dimensions it is \"scalar\"";
  std::vector<std::string> dims;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of("[](), ", at);
    if (begin == std::string_view::npos) break;
    at = std::min(text.size(), text.find_first_of("[](), ", begin));
    dims.emplace_back(text.substr(begin, at - begin));
  }
  for (const std::string& dim : dims) {
    const bool is_number = dim.find_first_not_of("-0123456789") == std::string::npos;
    if (is_number && !parse_dim(dim))
      return "'" + dim + "' is no extent: from 1 to " + std::to_string(kMaxFixedExtent);
    if (dim == "d" || dim == "dim" || dim == "head_dim")
      return "a formula sees logits, and no elements of q and k; an extent is a number: \"[64]\"";
    if (!is_number && std::ranges::count(dims, dim) > 1)
      return "'" + dim + "' stands twice; the second is an extent, a number: \"[" + dim + ", 32]\"";
  }
  if (dims.size() > kMaxParamRank)
    return "there are " + std::to_string(dims.size()) +
           " dimensions; two can be one: `bias[32 * i + j]`";
  return "";
}

}  // namespace

void shape_help(std::string_view text, Diagnostic& diagnostic) {
  if (std::string help = dimensions_help(text); !help.empty()) {
    diagnostic.helps.push_back(std::move(help));
    return;
  }
  std::vector<std::string> legal;
  for (const DimInfo& dim : all_dims())
    if (dim.axis != ParamAxis::kFixed) legal.emplace_back(dim.name);
  const auto is_separator = [](char c) {
    return std::string_view("[](), ").find(c) != std::string_view::npos;
  };
  std::string shape;
  bool has_name = false;  // in the place of an extent
  for (std::size_t at = 0; at < text.size();) {
    if (is_separator(text[at])) {
      ++at;
      continue;
    }
    const auto* const end = std::find_if(text.begin() + at, text.end(), is_separator);
    const std::string word(text.begin() + at, end);
    at = static_cast<std::size_t>(end - text.begin());
    const bool is_extent = word.find_first_not_of("0123456789") == std::string::npos;
    std::string dim = is_extent ? word : nearest_word(word, legal);
    if (std::string other = dim.empty() ? said_otherwise(word, WordPlace::kKey) : "";
        !other.empty()) {
      diagnostic.helps.push_back(std::move(other));
      return;
    }
    if (dim.empty()) {
      if (shape.empty() || has_name) return;
      dim = "32";
      has_name = true;
    }
    shape += (shape.empty() ? "[" : ", ") + dim;
  }
  std::vector<ParamDim> parsed;
  if (shape.empty() || !parse_shape(shape + "]", parsed)) return;
  diagnostic.helps.push_back(has_name ? "an extent is a number, such as \"" + shape + "]\""
                                      : "did you mean \"" + shape + "]\"?");
}

}  // namespace lacuna
