#include "compiler/spec/check_fields.hpp"

#include <algorithm>

#include "compiler/spec/fields.hpp"

namespace lacuna {
namespace {

using Kind = JsonNode::Kind;

std::string joined_names(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names)
    out.append(out.empty() ? "\"" : ", \"").append(name).append("\"");
  return out;
}

/// "an integer, a list of them or "auto"".
std::string expectation(const SpecField& field) {
  std::string out;
  switch (field.kind) {
    case SpecFieldKind::kObject:
    case SpecFieldKind::kParams:
      out = "an object";
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
  }
  if (field.plural == Plural::kOrAuto) out += " or \"auto\"";
  if (field.plural == Plural::kOrListOrAuto) out += ", a list of them or \"auto\"";
  return out;
}

class FieldChecker {
 public:
  FieldChecker(const SourceText& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  /// `path` is the object's place in the table, `label` the same as shown to the user.
  void object(JsonNode& node, const std::string& path, const std::string& label) {
    if (!node.is(Kind::kObject)) {
      const std::string who = label.empty() ? "a spec" : label;
      wrong_type(node, who, "an object");
      return;
    }
    for (JsonNode& child : node.children) {
      if (!child.usable) continue;  // a duplicate
      const std::string child_label = (label.empty() ? "" : label + ".") + child.key;
      const SpecField* field = find_field(path, child.key);
      if (child.key == kCommentKey) {
        if (!child.is(Kind::kString)) wrong_type(child, child_label, "a string");
      } else if (path == "params") {
        parameter(child, child_label);
      } else if (field == nullptr) {
        unknown_key(child, path, label);
      } else if (field->kind == SpecFieldKind::kObject || field->kind == SpecFieldKind::kParams) {
        object(child, std::string(field->path), child_label);
      } else {
        value(child, *field, child_label);
      }
    }
    for (const SpecField* field : members_of(path))
      if (field->required && node.find(key_of(*field)) == nullptr) missing(node, *field, label);
  }

 private:
  Diagnostic& report(Code code, JsonNode& node, std::string message) {
    node.usable = false;
    return diagnostics_.add(
        {.code = code, .message = std::move(message), .pointer = node.pointer, .span = node.span});
  }

  void wrong_type(JsonNode& node, const std::string& label, const std::string& expected) {
    report(Code::kWrongType, node,
           label + ": expected " + expected + ", got " + quoted_value(source_, node));
  }

  /// A value of the right type outside its range.
  Diagnostic& illegal(JsonNode& node, const SpecField& field, const std::string& label,
                      const std::string& rule) {
    Diagnostic& d =
        report(Code::kOutOfRange, node, label + " = " + quoted_value(source_, node) + " " + rule);
    if (!field.why.empty()) d.notes.emplace_back(field.why);
    return d;
  }

  void missing(const JsonNode& object, const SpecField& field, const std::string& label) {
    const bool root = object.key_span.line == 0;
    Span span = root ? object.span : object.key_span;
    if (root) span.length = 1;
    diagnostics_.add({.code = Code::kMissingField,
                      .message = (root ? "" : label + ": ") + "required field \"" +
                                 std::string(key_of(field)) + "\" is missing",
                      .pointer = object.pointer,
                      .span = span,
                      .notes = {std::string(field.doc)}});
  }

  void unknown_key(JsonNode& node, const std::string& path, const std::string& label) {
    Diagnostic& d =
        report(Code::kUnknownKey, node,
               "unknown key \"" + node.key + "\"" + (label.empty() ? "" : " in " + label));
    d.span = node.key_span;
    std::vector<std::string> keys;
    std::string all;
    for (const SpecField* field : members_of(path)) {
      keys.emplace_back(key_of(*field));
      all += (all.empty() ? "" : ", ") + keys.back();
    }
    const std::string nearest = nearest_word(node.key, keys);
    if (!nearest.empty()) d.helps.push_back("did you mean \"" + nearest + "\"?");
    for (const SpecField& field : spec_fields())
      if (key_of(field) == node.key)
        d.helps.push_back("there is a field " + std::string(field.path));
    if (d.helps.empty()) d.helps.push_back("legal keys: " + all);
  }

  void parameter(JsonNode& node, const std::string& label) {
    if (!is_param_name(node.key)) {
      Diagnostic& d =
          report(Code::kOutOfRange, node, "params: \"" + node.key + "\" is not a parameter name");
      d.span = node.key_span;
      d.notes.emplace_back(find_field("", "params")->why);
    }
    object(node, "params.*", label);
  }

  void value(JsonNode& node, const SpecField& field, const std::string& label) {
    if (field.plural != Plural::kOne && node.is_string("auto")) return;
    if (field.plural == Plural::kOrListOrAuto && node.is(Kind::kArray)) {
      list(node, field, label);
    } else {
      one(node, field, label);
    }
  }

  /// Different legal values, at least one.
  void list(JsonNode& node, const SpecField& field, const std::string& label) {
    if (node.children.empty()) {
      Diagnostic& d = report(Code::kOutOfRange, node, label + " is an empty list");
      if (field.plural == Plural::kOrListOrAuto)
        d.helps.emplace_back("leave it out or write \"auto\" to let the compiler decide");
      else
        d.helps.push_back("legal values: " + joined_names(field.names));
    }
    SpecField element = field;
    element.plural = Plural::kOne;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      JsonNode& child = node.children[i];
      const std::string child_label = label + "[" + std::to_string(i) + "]";
      one(child, element, child_label);
      for (std::size_t j = 0; j < i && child.usable; ++j) {
        const JsonNode& other = node.children[j];
        if (other.usable && other.string == child.string && other.number == child.number)
          report(Code::kOutOfRange, child,
                 label + " lists " + quoted_value(source_, child) + " twice");
      }
      node.usable = node.usable && child.usable;
    }
  }

  void one(JsonNode& node, const SpecField& field, const std::string& label) {
    switch (field.kind) {
      case SpecFieldKind::kObject:
      case SpecFieldKind::kParams:
        break;  // seen by object()
      case SpecFieldKind::kText:
      case SpecFieldKind::kExpression:
        typed(node, field, label, node.is(Kind::kString));
        break;
      case SpecFieldKind::kBoolean:
        typed(node, field, label, node.is(Kind::kBoolean));
        break;
      case SpecFieldKind::kName:
        if (typed(node, field, label, node.is(Kind::kString)) && !is_spec_name(node.string))
          illegal(node, field, label, "is not a name");
        break;
      case SpecFieldKind::kShape: {
        std::vector<ParamDim> shape;
        if (typed(node, field, label, node.is(Kind::kString)) && !parse_shape(node.string, shape))
          illegal(node, field, label, "is not a shape");
        break;
      }
      case SpecFieldKind::kInteger:
        integer(node, field, label);
        break;
      case SpecFieldKind::kNumber:
        number(node, field, label);
        break;
      case SpecFieldKind::kBound:
        if (!node.is_string("inf") && !node.is_string("-inf")) number(node, field, label);
        break;
      case SpecFieldKind::kRange:
        range(node, field, label);
        break;
      case SpecFieldKind::kEnum:
      case SpecFieldKind::kSubset:
        name(node, field, label);
        break;
    }
  }

  bool typed(JsonNode& node, const SpecField& field, const std::string& label, bool ok) {
    if (!ok) wrong_type(node, label, expectation(field));
    return ok;
  }

  void integer(JsonNode& node, const SpecField& field, const std::string& label) {
    if (!typed(node, field, label, node.is(Kind::kInteger))) return;
    const std::vector<int> nearest = nearest_legal(field, node.number);
    if (std::find(nearest.begin(), nearest.end(), node.number) != nearest.end()) return;
    std::string rule;
    if (!field.values.empty()) {
      const std::vector<int> all(field.values.begin(), field.values.end());
      rule = (all.size() > 1 ? "is not one of " : "is not ") + joined_integers(all);
    } else if (node.number < field.minimum || node.number > field.maximum) {
      rule = "is not in " + std::to_string(static_cast<int>(field.minimum)) + ".." +
             std::to_string(static_cast<int>(field.maximum));
    } else {
      rule = "is not a multiple of " + std::to_string(field.multiple);
    }
    illegal(node, field, label, rule)
        .helps.push_back((nearest.size() > 1 ? "nearest legal values: " : "nearest legal value: ") +
                         joined_integers(nearest));
  }

  void number(JsonNode& node, const SpecField& field, const std::string& label) {
    const bool is_number = node.is(Kind::kInteger) || node.is(Kind::kNumber);
    if (!typed(node, field, label, is_number)) return;
    if (node.number >= field.minimum && node.number <= field.maximum) return;
    illegal(node, field, label, "is out of range");
  }

  void range(JsonNode& node, const SpecField& field, const std::string& label) {
    if (!typed(node, field, label, node.is(Kind::kArray) && node.children.size() == 2)) return;
    SpecField bound = field;
    bound.kind = SpecFieldKind::kBound;
    for (std::size_t i = 0; i < 2; ++i) {
      one(node.children[i], bound, label + "[" + std::to_string(i) + "]");
      node.usable = node.usable && node.children[i].usable;
    }
  }

  void name(JsonNode& node, const SpecField& field, const std::string& label) {
    if (field.kind == SpecFieldKind::kSubset && node.is(Kind::kArray)) {
      SpecField element = field;
      element.kind = SpecFieldKind::kEnum;
      list(node, element, label);
      return;
    }
    const bool is_name = field.kind == SpecFieldKind::kEnum && node.is(Kind::kString);
    if (!typed(node, field, label, is_name)) return;
    const std::vector<std::string> names(field.names.begin(), field.names.end());
    if (std::find(names.begin(), names.end(), node.string) != names.end()) return;
    Diagnostic& d =
        illegal(node, field, label,
                (names.size() > 1 ? "is not one of " : "is not ") + joined_names(field.names));
    const std::string nearest = nearest_word(node.string, names);
    if (!nearest.empty())
      d.helps.push_back("did you mean \"" + nearest + "\"?");
    else if (field.plural != Plural::kOne)
      d.helps.push_back("legal: " + joined_names(field.names) + ", \"auto\"");
  }

  const SourceText& source_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_fields(const SourceText& source, JsonNode& root, Diagnostics& diagnostics) {
  FieldChecker(source, diagnostics).object(root, "", "");
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

std::string joined_integers(const std::vector<int>& values) {
  std::string out;
  for (const int value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}

}  // namespace lacuna
