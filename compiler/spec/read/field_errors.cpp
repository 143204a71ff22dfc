#include "compiler/spec/read/field_errors.hpp"

#include "compiler/diag/other_words.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {

Diagnostic& FieldErrors::report(Code code, JsonNode& node, std::string message) {
  node.usable = false;
  return diagnostics.add(
      {.code = code, .message = std::move(message), .pointer = node.pointer, .span = node.span});
}

void FieldErrors::wrong_type(JsonNode& node, const std::string& label,
                             const std::string& expected) {
  report(Code::kWrongType, node,
         label + ": expected " + expected + ", got " + quoted_value(source, node));
}

Diagnostic& FieldErrors::illegal(JsonNode& node, const SpecField& field, const std::string& label,
                                 const std::string& rule) {
  Diagnostic& d =
      report(Code::kOutOfRange, node, label + " = " + quoted_value(source, node) + " " + rule);
  if (!field.why.empty()) d.notes.emplace_back(field.why);
  return d;
}

void FieldErrors::missing(const JsonNode& object, const SpecField& field,
                          const std::string& label) {
  const bool root = object.key_span.line == 0;
  Span span = root ? object.span : object.key_span;
  if (root) span.length = 1;
  diagnostics.add({.code = Code::kMissingField,
                   .message = (root ? "" : label + ": ") + "required field \"" +
                              std::string(key_of(field)) + "\" is missing",
                   .pointer = object.pointer,
                   .span = span,
                   .notes = {std::string(field.doc)}});
  if (field.kind != SpecFieldKind::kSubset) return;
  diagnostics.items.back().helps.push_back("write \"" + std::string(key_of(field)) + "\": [" +
                                           joined_names(field.names) + "], or some of these");
}

std::string FieldErrors::unknown_key(JsonNode& node, const std::vector<std::string>& keys,
                                     const std::string& label) {
  Diagnostic& d =
      report(Code::kUnknownKey, node,
             "unknown key \"" + node.key + "\"" + (label.empty() ? "" : " in " + label));
  d.span = node.key_span;
  const std::string nearest = nearest_word(node.key, keys);
  if (!nearest.empty())
    d.helps.push_back("did you mean \"" + nearest + "\"?");
  else if (std::string otherwise = said_otherwise(node.key); !otherwise.empty())
    d.helps.push_back(std::move(otherwise));
  std::vector<std::string> elsewhere;
  for (const SpecField& field : spec_fields()) {
    if (!field.was.empty() && field.was == node.key)
      d.helps.push_back(node.key + " is called " + std::string(field.path) + " now");
    if (key_of(field) == node.key)
      elsewhere.push_back("there is a field " + std::string(field.path));
  }
  // A key that stands in many places, such as q, tells nothing of what was meant.
  if (elsewhere.size() <= 2) d.helps.insert(d.helps.end(), elsewhere.begin(), elsewhere.end());
  if (d.helps.empty()) d.helps.push_back("legal keys: " + joined_keys(keys));
  return nearest;
}

}  // namespace lacuna
