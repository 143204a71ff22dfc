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
  std::string value;
  if (field.kind == SpecFieldKind::kSubset)
    value = "[" + joined_names(field.names) + "], or some of these";
  else if (field.kind == SpecFieldKind::kInteger && !field.values.empty())
    value = std::to_string(field.values.back());
  else if (field.path == "predictor.keep")
    value = "\"rank < 32\" with an estimate, or by place \"k0 < 128\"";
  else if (field.path == "gate.skip")
    value = "\"gap < -10\", or another condition";
  else if (field.kind == SpecFieldKind::kName)
    value = "\"mine\", or another name";
  if (!value.empty())
    diagnostics.items.back().helps.push_back("write \"" + std::string(key_of(field)) +
                                             "\": " + value);
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
  else if (std::string otherwise = said_otherwise(node.key, WordPlace::kKey); !otherwise.empty())
    d.helps.push_back(std::move(otherwise));
  if (label == "quantise" && node.key == "bits")
    d.helps.emplace_back("write \"qk\": { \"bits\": 8 }; the same of v");
  else
    add_elsewhere(node.key, label, d);
  if (d.helps.empty()) d.helps.push_back("legal keys: " + joined_keys(keys));
  return nearest.empty() ? key_said_otherwise(node.key) : nearest;
}

/// Where a key is legal. In a branch it is what is nearest in the branch, or in a spec once.
void FieldErrors::add_elsewhere(const std::string& key, const std::string& label, Diagnostic& d) {
  constexpr std::string_view kBranch = "branches[", kFields = "branches.*.";
  const bool in_branch = label.starts_with(kBranch);
  const std::size_t within = label.find("].");  // `branches[0].attention`
  const std::string parent = within == std::string::npos ? "" : label.substr(within + 2);
  std::vector<std::string> elsewhere;
  for (const SpecField& field : spec_fields()) {
    if (!field.was.empty() && field.was == key)
      d.helps.push_back(key + " is called " + std::string(field.path) + " now");
    if (key_of(field) != key) continue;
    const std::string path(field.path);
    if (in_branch && parent.empty() && path == std::string(kFields) + "attention." + key) {
      d.helps.push_back("in a branch it stands in \"attention\": { \"" + key + "\": ... }");
      return;
    }
    const bool has_names =
        field.kind == SpecFieldKind::kParams || field.kind == SpecFieldKind::kLet;
    if (in_branch && (parent.empty() ? has_names : path == parent + "." + key)) {
      d.helps.push_back(path + " is said once, for all branches");
      return;
    }
    elsewhere.push_back("there is a field " + path);
  }
  // A key that stands in many places, such as q, tells nothing of what was meant.
  if (elsewhere.size() <= 2) d.helps.insert(d.helps.end(), elsewhere.begin(), elsewhere.end());
}

}  // namespace lacuna
