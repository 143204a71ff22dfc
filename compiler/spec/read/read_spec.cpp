// JSON text -> Spec: tree, checks against the field table, values into their slots, rules.
#include <algorithm>
#include <array>
#include <type_traits>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/declared_ranges.hpp"
#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/read/check_fields.hpp"
#include "compiler/spec/read/rules.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/field_words.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

double bound_value(const JsonNode& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (node.is_string("inf")) return kInfinity;
  if (node.is_string("-inf")) return -kInfinity;
  return node.number;
}

/// The place of a checked name.
std::size_t index_of(std::span<const std::string_view> names, std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

template <class Enum>
Enum enumerator(const SpecField& field, const JsonNode& node) {
  return static_cast<Enum>(index_of(field.names, node.string));
}

TokenOrder token_order(std::string_view name) {
  return static_cast<TokenOrder>(index_of(kTokenOrderNames, name));
}

/// "attention.mask", "branches[1].weight"
std::string label_of(const SpecField& field, const JsonNode& node) {
  constexpr std::string_view kBranches = "/branches/", kOfAll = "branches.*";
  if (field.site == Site::kLet) return "let." + node.key;
  std::string label(field.path);
  if (!field.path.starts_with(kOfAll)) return label;
  const std::string branch = node.pointer.substr(
      kBranches.size(), node.pointer.find('/', kBranches.size()) - kBranches.size());
  return label.replace(0, kOfAll.size(), "branches[" + branch + "]");
}

/// Moves checked values into the slots of the field table.
class SpecLoader {
 public:
  SpecLoader(const SourceText& source, const JsonNode& root, Diagnostics& diagnostics,
             VariantSpec& spec)
      : source_(source), root_(root), diagnostics_(diagnostics), spec_(spec) {}

  void load() {
    // Expressions need all parameters and names of `let`, wherever the file declares them.
    const JsonNode& root = root_;
    const JsonNode* params = root.find("params");
    if (params != nullptr && params->usable) load_params(*params);
    knows_names_ = params == nullptr || params->is(JsonNode::Kind::kObject);
    symbols_ = spec_.param_symbols();
    const JsonNode* let = root.find("let");
    if (let != nullptr) load_let(*let);
    load_object(root, "", {.spec = &spec_});
    const JsonNode* attention = root.find("attention");
    const JsonNode* branches = root.find("branches");
    if (branches != nullptr && branches->usable) load_branches(*branches);
    const bool has_lse = has_denominator(spec_.attention.normalise) &&
                         (spec_.branches.empty() || spec_.branches[0].branch.weight.empty());
    if (!has_lse && (attention == nullptr || attention->find("lse") == nullptr))
      spec_.attention.lse = false;
  }

  /// Of a spec without errors: names that no formula and no definition reads.
  void warn_of_unread() {
    for (std::size_t n = 0; n < spec_.let.size(); ++n) {
      if (is_read_[n]) continue;
      const std::string& name = spec_.let[n].name;
      const JsonNode& node = *root_.find("let")->find(name);
      diagnostics_.add({.code = Code::kUnusedParam,
                        .severity = Severity::kWarning,
                        .message = "let." + name + " is not read by any expression",
                        .pointer = node.pointer,
                        .span = node.key_span});
    }
  }

 private:
  void load_params(const JsonNode& params) {
    for (const JsonNode& node : params.children) {
      if (node.key == kCommentKey) continue;
      declarations_sound_ = declarations_sound_ && node.usable;
      for (const JsonNode& child : node.children)
        declarations_sound_ = declarations_sound_ && child.usable;
      if (params.find(node.key) != &node) continue;  // a duplicate
      ParamSpec& param = spec_.params.emplace_back();
      param.symbol.name = node.key;
      if (node.is(JsonNode::Kind::kObject)) load_object(node, "params.*", {.param = &param});
    }
  }

  /// Formulas need all names, also those that have no definition for now.
  void load_let(const JsonNode& let) {
    knows_names_ = knows_names_ && let.is(JsonNode::Kind::kObject);
    if (!let.usable) return;
    for (const JsonNode& node : let.children)
      if (is_param_name(node.key) && let.find(node.key) == &node)
        spec_.let.push_back({node.key, {}});
    is_read_.resize(spec_.let.size());
    for (known_ = 0; known_ < spec_.let.size(); ++known_) {
      const JsonNode& node = *let.find(spec_.let[known_].name);
      if (node.usable) store_expression(node, *find_field("let", "*"), spec_.let[known_].expr);
    }
  }

  /// A branch is the attention of the spec with what the branch says in its place.
  void load_branches(const JsonNode& node) {
    VariantSpec shared;  // what is said of one attend is no branch's (branches/rules_branches.cpp)
    shared.name = spec_.name, shared.doc = spec_.doc, shared.source = spec_.source;
    shared.attention = spec_.attention;
    shared.params = spec_.params;
    shared.let = spec_.let;
    shared.permute = spec_.permute;
    const auto count = static_cast<int>(node.children.size());
    for (const JsonNode& child : node.children) {
      VariantSpec& spec = spec_.branches.emplace_back(shared);
      spec.branch.index = static_cast<int>(spec_.branches.size()) - 1;
      spec.branch.count = count;
      load_object(child, "branches.*", {.spec = &spec});
      spec.name += "-" + spec.branch.name;
      spec.attention.lse = spec.branch.weight.empty() && has_denominator(spec.attention.normalise);
    }
  }

  /// The last step is the predictor, the others come before it.
  void load_predictor(const JsonNode& node, VariantSpec& spec) {
    PredictorSpec& last = spec.predictor.emplace();
    const std::size_t count = node.is(JsonNode::Kind::kArray) ? node.children.size() : 1;
    last.before.resize(count - 1);
    for (std::size_t n = 0; n + 1 < count; ++n) load_step(node.children[n], spec, last.before[n]);
    load_step(node.is(JsonNode::Kind::kArray) ? node.children.back() : node, spec, last);
  }

  void load_step(const JsonNode& node, VariantSpec& spec, PredictorSpec& step) {
    load_object(node, "predictor", {.spec = &spec, .step = &step});
    if (!step.estimate) return;
    // A reference alone says what normalises.
    const JsonNode& estimate = *node.find("estimate");
    if (estimate.find("reference") != nullptr && estimate.find("normalise") == nullptr)
      step.estimate->normalise = Normalise::kLse;
    // An index compares tokens.
    for (const auto& [key, side] : {std::pair{"q", &EstimateSpec::q}, {"k", &EstimateSpec::k}})
      if (step.estimate->index && estimate.find(key) == nullptr)
        ((*step.estimate).*side).kind = SummaryKind::kTokens;
  }

  void load_object(const JsonNode& object, const std::string& path, const SpecDraft& draft) {
    for (const JsonNode& node : object.children) {
      const SpecField* field = find_meant_field(path, node.key);
      if (!node.usable || field == nullptr || field->kind == SpecFieldKind::kParams ||
          field->kind == SpecFieldKind::kLet || field->kind == SpecFieldKind::kBranches)
        continue;
      if (field->most_steps > 1) {
        load_predictor(node, *draft.spec);
        continue;
      }
      if (field->slot != nullptr)
        std::visit([&](auto slot) { store(node, *field, slot); }, field->slot(draft));
      if (field->kind == SpecFieldKind::kObject) load_object(node, std::string(field->path), draft);
    }
  }

  template <class T>
  void store(const JsonNode& node, const SpecField& field, T* slot) {
    if constexpr (std::is_same_v<T, int>) {
      if (!node.is_string("auto")) *slot = static_cast<int>(node.number);
    } else if constexpr (std::is_same_v<T, float>) {
      *slot = static_cast<float>(node.number);
    } else if constexpr (std::is_same_v<T, bool>) {
      *slot = field.kind == SpecFieldKind::kEnum ? node.string == field.names.back() : node.boolean;
    } else if constexpr (std::is_same_v<T, std::string>) {
      *slot = node.string;
    } else if constexpr (std::is_same_v<T, std::optional<float>>) {
      if (!node.is_string("auto")) *slot = static_cast<float>(node.number);
    } else if constexpr (std::is_same_v<T, Expr>) {
      store_expression(node, field, *slot);
    } else if constexpr (std::is_same_v<T, std::vector<ParamDim>>) {
      parse_shape(node.string, *slot);
    } else if constexpr (std::is_same_v<T, Summary>) {
      *slot = parse_summary(node.string).value_or(Summary{});
    } else if constexpr (std::is_enum_v<T>) {
      *slot = enumerator<T>(field, node);
    } else {
      store_parts(node, field, *slot);
    }
  }
  void store(const JsonNode&, const SpecField&, std::monostate) {}
  void store(const JsonNode& node, const SpecField& field, const SubsetFlags& flags) {
    for (const JsonNode& part : node.children) *flags[index_of(field.names, part.string)] = true;
  }

  /// An object that may be absent is there.
  template <class T>
  void store_parts(const JsonNode&, const SpecField&, std::optional<T>& object) {
    object.emplace();
  }

  template <class T>
  void store_parts(const JsonNode& node, const SpecField& field, Choice<T>& choice) {
    if (node.is_string("auto")) return;
    const auto add = [&](const JsonNode& value) {
      if constexpr (std::is_enum_v<T>)
        choice.values.push_back(enumerator<T>(field, value));
      else
        choice.values.push_back(static_cast<T>(value.number));
    };
    if (node.is(JsonNode::Kind::kArray))
      std::for_each(node.children.begin(), node.children.end(), add);
    else
      add(node);
  }

  void store_parts(const JsonNode& node, const SpecField& field, ParamSpec& param) {
    if (field.kind == SpecFieldKind::kRange) {
      param.minimum = bound_value(node.children[0]);
      param.maximum = bound_value(node.children[1]);
      note_declared_range(param);
    } else {
      param.default_value = bound_value(node);
      param.has_default = true;
    }
  }

  void store_parts(const JsonNode& node, const SpecField&, PermuteSpec& permute) {
    if (node.is(JsonNode::Kind::kString)) {
      permute.order = token_order(node.string);
      return;
    }
    for (const JsonNode& grid : node.children) {
      if (grid.key == kCommentKey) continue;
      const bool is_cube = grid.key == kCubesKey;
      if (!is_cube) permute.order = token_order(grid.key);
      const std::array sides = is_cube
                                   ? std::array{&permute.cube_t, &permute.cube_h, &permute.cube_w}
                                   : std::array{&permute.t, &permute.h, &permute.w};
      for (std::size_t i = 0; i < 3; ++i) *sides[i] = static_cast<int>(grid.children[i].number);
    }
  }

  void store_expression(const JsonNode& node, const SpecField& field, Expr& slot) {
    ParsedExpr parsed = parse_expr(node.string, field.site, symbols_, {spec_.let, known_});
    slot = std::move(parsed.expr);
    for (const std::size_t let : parsed.lets) is_read_[let] = true;
    for (ExprError& error : parsed.errors) {
      // A parameter whose declaration is wrong would draw errors of its own.
      const bool about_types = error.code == Code::kExprType || error.code == Code::kExprIndex;
      if (about_types && !declarations_sound_) continue;
      if (error.code == Code::kExprUnknownName && !knows_names_) continue;
      const std::string site = std::string(info(field.site).name) + ": ";
      if (error.message.starts_with(site)) error.message.erase(0, site.size());
      if (error.let) error.notes.insert(error.notes.begin(), place_of_definition(*error.let));
      diagnostics_.add({.code = error.code,
                        .message = label_of(field, node) + ": " + error.message,
                        .pointer = node.pointer,
                        .span = span_in_string(source_, node, error.begin, error.end),
                        .notes = std::move(error.notes),
                        .helps = std::move(error.helps)});
    }
  }

  std::string place_of_definition(std::size_t let) const {
    const LetSymbol& symbol = spec_.let[let];
    const JsonNode& node = *root_.find("let")->find(symbol.name);
    return "'" + symbol.name + "' is defined in line " + std::to_string(node.key_span.line) +
           ", column " + std::to_string(node.key_span.column) + ": " + quoted_value(source_, node);
  }

  const SourceText& source_;
  const JsonNode& root_;
  Diagnostics& diagnostics_;
  VariantSpec& spec_;
  std::vector<ParamSymbol> symbols_;
  std::size_t known_ = 0;      ///< names of `let` that are defined
  std::vector<bool> is_read_;  ///< of each name of `let`
  bool declarations_sound_ = true;
  bool knows_names_ = true;  ///< of parameters: `params` is an object
};

void collect_spans(const JsonNode& node, std::map<std::string, Span>& spans) {
  spans.emplace(node.pointer, node.span);
  for (const JsonNode& child : node.children) collect_spans(child, spans);
}

/// The fields of the last of several steps stand for those of the predictor, too.
void collect_steps(const JsonNode& root, std::map<std::string, Span>& spans) {
  const JsonNode* predictor = root.find("predictor");
  if (predictor == nullptr || !predictor->is(JsonNode::Kind::kArray) || predictor->children.empty())
    return;
  const std::string last = predictor->children.back().pointer;
  std::map<std::string, Span> of_last;
  collect_spans(predictor->children.back(), of_last);
  for (const auto& [pointer, span] : of_last)
    spans.emplace(predictor->pointer + pointer.substr(last.size()), span);
}

}  // namespace

SpecDocument read_spec(SourceText source, Diagnostics& diagnostics) {
  SpecDocument document;
  document.source = std::move(source);
  Diagnostics found;
  if (auto root = parse_json(document.source, found)) {
    collect_spans(*root, document.spans);
    collect_steps(*root, document.spans);
    check_fields(document.source, *root, found);
    if (root->usable) {
      SpecLoader loader(document.source, *root, found, document.spec);
      loader.load();
      check_rules(document.source, *root, document.spec, found);
      if (!found.has_errors()) loader.warn_of_unread();
    }
  }
  std::stable_sort(
      found.items.begin(), found.items.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return std::pair(a.span.line, a.span.column) < std::pair(b.span.line, b.span.column);
      });
  std::move(found.items.begin(), found.items.end(), std::back_inserter(diagnostics.items));
  return document;
}

}  // namespace lacuna
