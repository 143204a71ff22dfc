#include "compiler/spec/table/field_words.hpp"

#include "compiler/spec/summary.hpp"

namespace lacuna {

using Kind = JsonNode::Kind;

std::vector<std::string> summary_forms(const SpecField& field) {
  std::vector<std::string> forms;
  for (const SummaryInfo& row : summaries_of(field.side)) forms.push_back(form_of(row.kind));
  return forms;
}

std::string expectation(const SpecField& field) {
  std::string out;
  switch (field.kind) {
    case SpecFieldKind::kObject:
    case SpecFieldKind::kParams:
    case SpecFieldKind::kLet:
    case SpecFieldKind::kAsRoot:
      out = "an object";
      break;
    case SpecFieldKind::kBranches:
      out = "a list of branches";
      break;
    case SpecFieldKind::kText:
    case SpecFieldKind::kName:
      out = "a string";
      break;
    case SpecFieldKind::kExpression:
      out = "an expression in a string";
      break;
    case SpecFieldKind::kShape:
      out = "a shape in a string";
      break;
    case SpecFieldKind::kBoolean:
      out = "true or false";
      break;
    case SpecFieldKind::kInteger:
      out = "an integer";
      break;
    case SpecFieldKind::kNumber:
      out = "a number";
      break;
    case SpecFieldKind::kBound:
      out = "a number, \"inf\" or \"-inf\"";
      break;
    case SpecFieldKind::kRange:
      out = "a list of two numbers";
      break;
    case SpecFieldKind::kEnum:
      out = (field.names.size() > 1 ? "one of " : "") + joined_names(field.names);
      break;
    case SpecFieldKind::kSubset:
      out = "a list of some of " + joined_names(field.names);
      break;
    case SpecFieldKind::kSummary:
      out = "one of " + joined_names(summary_forms(field));
      break;
    case SpecFieldKind::kBands:
      out = "bands of the head dimension in a string";
      break;
    case SpecFieldKind::kTokenOrder:
      out = joined_names(field.names) + " or an object with one of " + joined_names(field.grids);
      break;
  }
  if (field.plural == Plural::kOrAuto) out += " or \"auto\"";
  if (field.plural == Plural::kOrListOrAuto) out += ", a list of them or \"auto\"";
  return out;
}

std::string quoted_value(const SourceText& source, const JsonNode& node) {
  constexpr std::size_t kLongest = 40;
  if (node.is(Kind::kArray)) {
    const std::size_t count = node.children.size();
    return count == 0 ? "an empty list"
                      : "a list of " + std::to_string(count) + (count == 1 ? " value" : " values");
  }
  if (node.is(Kind::kObject)) return "an object";
  std::string text =
      node.is(Kind::kString) ? node.string : source.text.substr(node.begin, node.end - node.begin);
  if (text.size() > kLongest) {
    text.resize(kLongest);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80U) != 0) text.pop_back();
    text += "...";
  }
  return node.is(Kind::kString) ? "\"" + text + "\"" : text;
}

std::string joined_keys(const std::vector<std::string>& keys) {
  std::string all;
  for (const std::string& key : keys) all += (all.empty() ? "" : ", ") + key;
  return all;
}

std::string joined_integers(const std::vector<int>& values) {
  std::string out;
  for (const int value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}

}  // namespace lacuna
