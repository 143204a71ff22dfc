// Looking fields up, and the small grammars of their values: integers, names, shapes.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? "" : path.substr(0, dot);
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

std::string_view key_of(const SpecField& field) {
  return field.path.substr(field.path.rfind('.') + 1);
}

std::vector<const SpecField*> members_of(std::string_view parent) {
  std::vector<const SpecField*> members;
  for (const SpecField& field : spec_fields())
    if (parent_of(field.path) == parent && key_of(field) != "*") members.push_back(&field);
  return members;
}

const SpecField* find_field(std::string_view parent, std::string_view key) {
  for (const SpecField& field : spec_fields())
    if (parent_of(field.path) == parent && key_of(field) == key) return &field;
  return nullptr;
}

const SpecField* find_meant_field(std::string_view parent, std::string_view key) {
  const SpecField* field = find_field(parent, key);
  const bool is_shared = field != nullptr && field->kind == SpecFieldKind::kAsRoot;
  return is_shared ? find_field("", key) : field;
}

std::vector<int> nearest_legal(const SpecField& field, double value) {
  std::vector<int> legal(field.values.begin(), field.values.end());
  if (field.maximum != 0) {
    const int first = static_cast<int>(field.minimum);
    for (int x = first; x <= static_cast<int>(field.maximum); x += field.multiple)
      legal.push_back(x);
  }
  const auto above = std::lower_bound(legal.begin(), legal.end(), value);
  std::vector<int> nearest;
  if (above != legal.begin()) nearest.push_back(*(above - 1));
  if (above != legal.end()) nearest.push_back(*above);
  return nearest;
}

std::string integers_text(const SpecField& field) {
  std::string out;
  for (const int value : field.values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  if (field.maximum == 0) return out;
  if (!out.empty()) out += " or ";
  out += std::to_string(static_cast<int>(field.minimum)) + " to " +
         std::to_string(static_cast<int>(field.maximum));
  if (field.multiple != 1) out += " in steps of " + std::to_string(field.multiple);
  return out;
}

bool is_spec_name(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  if (std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_word_character(c) || c == '-'; });
}

bool is_param_name(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  if (std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
  return std::all_of(text.begin(), text.end(), is_word_character);
}

std::optional<ParamDim> parse_dim(std::string_view word) {
  for (const DimInfo& dim : all_dims())
    if (!word.empty() && dim.name == word) return dim.axis;
  std::int32_t extent = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), extent);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if (extent < 1 || extent > kMaxFixedExtent) return std::nullopt;
  return ParamDim(ParamAxis::kFixed, extent);
}

bool parse_shape(std::string_view text, std::vector<ParamDim>& shape) {
  shape.clear();
  if (text == "scalar") return true;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const std::optional<ParamDim> dim = parse_dim(word);
    if (!dim || shape.size() == kMaxParamRank) return false;
    const bool is_fixed = dim->axis == ParamAxis::kFixed;
    if (!is_fixed && std::find(shape.begin(), shape.end(), *dim) != shape.end()) return false;
    shape.push_back(*dim);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return true;
}

std::string print_shape(const std::vector<ParamDim>& shape) {
  if (shape.empty()) return "scalar";
  std::string out = "[";
  for (const ParamDim& dim : shape) out.append(out.size() > 1 ? ", " : "").append(name_of(dim));
  return out + "]";
}

std::string shape_pattern() {
  std::string dim = "(";
  for (const DimInfo& each : all_dims())
    if (!each.name.empty()) dim.append(each.name).append("|");
  dim += "[1-9][0-9]{0,4})";
  const std::string rest = "( *, *" + dim + "){0," + std::to_string(kMaxParamRank - 1) + "}";
  // The lookahead refuses an axis that occurs twice.
  return "^(scalar|(?!.*\\b([a-z]\\w*)\\b.*\\b\\2\\b)\\[ *" + dim + rest + " *\\])$";
}

}  // namespace lacuna
