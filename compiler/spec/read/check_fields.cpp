#include "compiler/spec/read/check_fields.hpp"

#include <algorithm>

#include "compiler/spec/read/check_grid.hpp"
#include "compiler/spec/read/field_errors.hpp"
#include "compiler/spec/read/type_help.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/bands.hpp"
#include "compiler/spec/table/field_words.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

using Kind = JsonNode::Kind;

std::vector<std::string> keys_of(std::string_view path) {
  std::vector<std::string> keys;
  for (const SpecField* field : members_of(path)) keys.emplace_back(key_of(*field));
  return keys;
}

/// "last64", "last_64" and "last-64" as "last(64)".
std::string with_parentheses(const std::string& text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos) return text;
  const std::string name = text.substr(0, text.find_last_not_of("0123456789_-( ") + 1);
  const std::string number = text.substr(digit, text.find_last_of("0123456789") + 1 - digit);
  return name.substr(0, name.find_first_of("_-( ")) + "(" + number + ")";
}

class FieldChecker {
 public:
  FieldChecker(const SourceText& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics), errors_{source, diagnostics} {}

  void check(JsonNode& root) {
    object(root, "", "");
    root.usable = root.usable && !has_excess_;
  }

 private:
  /// `path` is the object's place in the table, `label` the same as shown to the user.
  void object(JsonNode& node, const std::string& path, const std::string& label) {
    if (!node.is(Kind::kObject)) {
      const std::string who = label.empty() ? "a spec" : label;
      errors_.wrong_type(node, who, "an object");
      if (!path.empty()) {
        diagnostics_.items.back().helps.push_back(object_help(source_, node, path, keys_of(path)));
      }
      return;
    }
    if ((path == "params" && has_too_many(node, label, kMaxParams, "parameters")) ||
        (path == "let" && has_too_many(node, label, kMaxLets, "names"))) {
      has_excess_ = true;
      return;
    }
    std::vector<std::string> meant;  // by keys that are unknown
    for (JsonNode& child : node.children) {
      if (!child.usable) continue;  // a duplicate
      const std::string child_label = (label.empty() ? "" : label + ".") + child.key;
      const SpecField* field = find_meant_field(path, child.key);
      if (child.key == kCommentKey) {
        if (!child.is(Kind::kString)) errors_.wrong_type(child, child_label, "a string");
      } else if (path == "params") {
        if (!is_param_name(child.key)) illegal_name(child, path, "a parameter name");
        object(child, "params.*", child_label);
      } else if (path == "let") {
        if (!is_param_name(child.key)) illegal_name(child, path, "a name that formulas can read");
        value(child, *find_field(path, "*"), child_label);
      } else if (field == nullptr) {
        meant.push_back(errors_.unknown_key(child, keys_of(path), label));
      } else if (field->most_steps > 1 && child.is(Kind::kArray)) {
        steps(child, *field, child_label);
      } else if (field->kind == SpecFieldKind::kObject || field->kind == SpecFieldKind::kParams ||
                 field->kind == SpecFieldKind::kLet) {
        object(child, std::string(field->path), child_label);
      } else {
        value(child, *field, child_label);
      }
    }
    for (const SpecField* field : members_of(path))
      if (field->required && node.find(key_of(*field)) == nullptr &&
          std::ranges::find(meant, key_of(*field)) == meant.end())
        errors_.missing(node, *field, label);
  }

  /// Several objects in the place of one, or branches.
  void steps(JsonNode& node, const SpecField& field, const std::string& label) {
    const bool has_branches = field.kind == SpecFieldKind::kBranches;
    const std::size_t count = node.children.size(), least = has_branches ? 2 : 1;
    if (count < least || count > field.most_steps) {
      Diagnostic& d = errors_.report(Code::kOutOfRange, node,
                                     label + ": expected " + std::to_string(least) + " to " +
                                         std::to_string(field.most_steps) +
                                         (has_branches ? " branches" : " steps") + ", got " +
                                         std::to_string(count));
      d.notes.emplace_back(field.why);
      if (has_branches && count == 1)
        d.helps.emplace_back("what it says stands in the spec itself");
      return;
    }
    const std::string path = std::string(field.path) + (has_branches ? ".*" : "");
    for (std::size_t n = 0; n < count; ++n) {
      object(node.children[n], path, label + "[" + std::to_string(n) + "]");
      node.usable = node.usable && node.children[n].usable;
    }
  }

  /// More members than there may be; nothing is read then that could refer to them.
  bool has_too_many(JsonNode& node, const std::string& label, std::size_t most,
                    const std::string& what) {
    std::size_t count = 0;
    JsonNode* first_beyond = nullptr;
    for (JsonNode& child : node.children)
      if (child.key != kCommentKey && ++count == most + 1) first_beyond = &child;
    if (first_beyond == nullptr) return false;
    Diagnostic& d = errors_.report(Code::kOutOfRange, *first_beyond,
                                   label + ": expected at most " + std::to_string(most) + " " +
                                       what + ", got " + std::to_string(count));
    d.span = first_beyond->key_span;
    if (label == "params")
      d.notes.emplace_back("every launch passes all of them in one block of arguments");
    return true;
  }

  void illegal_name(JsonNode& node, const std::string& path, const std::string& what) {
    Diagnostic& d =
        errors_.report(Code::kOutOfRange, node, path + ": \"" + node.key + "\" is not " + what);
    d.span = node.key_span;
    d.notes.emplace_back(find_field("", path)->why);
    if (std::string name = nearest_param_name(node.key); !name.empty())
      d.helps.push_back("such as \"" + name + "\"");
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
      Diagnostic& d = errors_.report(Code::kOutOfRange, node, label + " is an empty list");
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
          errors_.report(Code::kOutOfRange, child,
                         label + " lists " + quoted_value(source_, child) + " twice");
      }
      node.usable = node.usable && child.usable;
    }
  }

  void one(JsonNode& node, const SpecField& field, const std::string& label) {
    switch (field.kind) {
      case SpecFieldKind::kObject:
      case SpecFieldKind::kParams:
      case SpecFieldKind::kLet:
      case SpecFieldKind::kAsRoot:
        break;  // seen by object()
      case SpecFieldKind::kBranches:
        errors_.wrong_type(node, label, expectation(field));  // lists are seen by steps()
        if (node.is(Kind::kObject)) diagnostics_.items.back().helps.push_back(branches_help(node));
        break;
      case SpecFieldKind::kText:
      case SpecFieldKind::kExpression:
        typed(node, field, label, node.is(Kind::kString));
        break;
      case SpecFieldKind::kBoolean:
        typed(node, field, label, node.is(Kind::kBoolean));
        break;
      case SpecFieldKind::kName:
        if (typed(node, field, label, node.is(Kind::kString)) && !is_spec_name(node.string))
          name_help(node.string, errors_.illegal(node, field, label, "is not a name"));
        break;
      case SpecFieldKind::kShape: {
        std::vector<ParamDim> shape;
        if (typed(node, field, label, node.is(Kind::kString)) && !parse_shape(node.string, shape))
          shape_help(node.string, errors_.illegal(node, field, label, "is not a shape"));
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
      case SpecFieldKind::kSummary:
        summary(node, field, label);
        break;
      case SpecFieldKind::kBands:
        if (typed(node, field, label, node.is(Kind::kString)) && !band_steps(node.string))
          errors_.illegal(node, field, label, "is no list of bands")
              .helps.push_back(bands_help(node.string));
        break;
      case SpecFieldKind::kTokenOrder:
        token_order(node, field, label);
        break;
    }
  }

  bool typed(JsonNode& node, const SpecField& field, const std::string& label, bool ok) {
    if (ok) return true;
    errors_.wrong_type(node, label, expectation(field));
    if (std::string help = type_help(source_, node, field); !help.empty())
      diagnostics_.items.back().helps.push_back(std::move(help));
    return false;
  }

  void integer(JsonNode& node, const SpecField& field, const std::string& label) {
    if (!typed(node, field, label, node.is(Kind::kInteger))) return;
    const std::vector<int> nearest = nearest_legal(field, node.number);
    if (std::find(nearest.begin(), nearest.end(), node.number) != nearest.end()) return;
    std::string rule;
    if (!field.values.empty()) {
      const bool one = field.values.size() == 1 && field.maximum == 0;
      rule = (one ? "is not " : "is not one of ") + integers_text(field);
    } else if (node.number < field.minimum || node.number > field.maximum) {
      rule = "is not in " + std::to_string(static_cast<int>(field.minimum)) + ".." +
             std::to_string(static_cast<int>(field.maximum));
    } else {
      rule = "is not a multiple of " + std::to_string(field.multiple);
    }
    errors_.illegal(node, field, label, rule)
        .helps.push_back((nearest.size() > 1 ? "nearest legal values: " : "nearest legal value: ") +
                         joined_integers(nearest));
  }

  void number(JsonNode& node, const SpecField& field, const std::string& label) {
    const bool is_number = node.is(Kind::kInteger) || node.is(Kind::kNumber);
    if (!typed(node, field, label, is_number)) return;
    if (node.number >= field.minimum && node.number <= field.maximum) return;
    Diagnostic& d = errors_.illegal(node, field, label, "is out of range");
    if (node.number > field.maximum && field.maximum < kLargestF32)
      d.helps.push_back("nearest legal value: " + std::to_string(static_cast<int>(field.maximum)));
    else if (field.kind == SpecFieldKind::kNumber)
      d.helps.push_back("left out it is " + std::string(field.fallback));
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
    if (typed(node, field, label, is_name)) name_among(node, field, label);
  }

  void name_among(JsonNode& node, const SpecField& field, const std::string& label) {
    const std::vector<std::string> names(field.names.begin(), field.names.end());
    if (std::find(names.begin(), names.end(), node.string) != names.end()) return;
    Diagnostic& d = errors_.illegal(
        node, field, label,
        (names.size() > 1 ? "is not one of " : "is not ") + joined_names(field.names));
    const std::string nearest = nearest_word(node.string, names);
    const bool is_weight = field.path == "attention.normalise";  // `softmax1` is no slip
    std::string other = value_said_otherwise(field, node.string);
    if (!other.empty() && (is_weight || nearest.empty()))
      d.helps.push_back(std::move(other));
    else if (!nearest.empty())
      d.helps.push_back("did you mean \"" + nearest + "\"?");
    else if (field.plural != Plural::kOne)
      d.helps.push_back("legal: " + joined_names(field.names) + ", \"auto\"");
    else if (d.notes.empty())
      d.notes.emplace_back(field.doc);
    if (label == "mask" && node.string.find_first_of("<>=") != std::string::npos)
      d.helps.push_back("what a query sees is attention.mask: \"attention\": { \"mask\": \"" +
                        node.string + "\" }");
  }

  void summary(JsonNode& node, const SpecField& field, const std::string& label) {
    if (!typed(node, field, label, node.is(Kind::kString))) return;
    const std::vector<SummaryInfo> known = summaries_of(field.side);
    const auto value = parse_summary(node.string);
    if (value && info(value->kind).is_of(field.side)) return;
    const std::string name = node.string.substr(0, node.string.find('('));
    const bool has_number = name.size() < node.string.size();
    auto row = std::find_if(known.begin(), known.end(), [&](const SummaryInfo& each) {
      return each.name == name && (each.first != 0) == has_number;
    });
    if (row == known.end())
      row = std::find_if(known.begin(), known.end(),
                         [&](const SummaryInfo& each) { return each.name == name; });
    const std::vector<std::string> forms = summary_forms(field);
    if (row == known.end()) {
      Diagnostic& d = errors_.illegal(node, field, label, "is not one of " + joined_names(forms));
      const std::string nearest = nearest_word(node.string, forms);
      const auto other = parse_summary(node.string);
      const std::string numbered = with_parentheses(node.string);
      if (const auto meant = parse_summary(numbered); meant && info(meant->kind).is_of(field.side))
        d.helps.push_back("did you mean \"" + numbered + "\"?");
      else if (other)
        d.helps.push_back("\"" + node.string + "\" is one of predictor.estimate." +
                          (field.side == SummarySide::kQueries ? "k" : "q"));
      else if (!nearest.empty())
        d.helps.push_back("did you mean \"" + nearest + "\"?");
    } else {
      const std::string form = form_of(row->kind);
      Diagnostic& d = errors_.illegal(node, field, label, "is not \"" + form + "\"");
      if (row->first != 0)
        counts_help(node.string, *row, d);
      else
        d.helps.push_back("\"" + form + "\" has no number");
    }
  }

  void token_order(JsonNode& node, const SpecField& field, const std::string& label) {
    if (node.is(Kind::kString)) {
      name_among(node, field, label);
      if (node.usable || !diagnostics_.items.back().helps.empty()) return;
      Diagnostic& d = diagnostics_.items.back();
      const std::string grid = nearest_word(node.string, {field.grids.begin(), field.grids.end()});
      d.helps = {grid.empty() ? "an order of your own is \"external\": it comes with the launch"
                              : "write { \"" + grid + "\": [T, H, W] }"};
      if (grid.empty())
        d.notes = {"an object names a grid of tokens: " + joined_names(field.grids)};
      return;
    }
    if (typed(node, field, label, node.is(Kind::kObject)))
      check_grid(node, field, label, errors_);
    else if (std::string help = grid_help(node, field); !help.empty())
      diagnostics_.items.back().helps = {std::move(help)};
  }

  const SourceText& source_;
  Diagnostics& diagnostics_;
  FieldErrors errors_;
  bool has_excess_ = false;
};

}  // namespace

void check_fields(const SourceText& source, JsonNode& root, Diagnostics& diagnostics) {
  FieldChecker(source, diagnostics).check(root);
}

}  // namespace lacuna
