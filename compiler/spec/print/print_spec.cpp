// Spec -> canonical JSON: the fields that differ from their defaults, in the order of the table.
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/json/json_layout.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

/// The shortest decimal number that reads back as the same f32.
Json f32_number(float value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return Json::parse(digits.data(), end);
}

Json bound(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  constexpr double kWhole = 1e15;  // all whole numbers below have an exact i64
  if (std::nearbyint(value) == value && std::abs(value) < kWhole)
    return static_cast<std::int64_t>(value);
  return value;
}

template <class T>
Json choice_json(const SpecField& field, const Choice<T>& choice) {
  Json values = Json::array();
  for (const T value : choice.values) {
    if constexpr (std::is_enum_v<T>)
      values.push_back(field.names[static_cast<std::size_t>(value)]);
    else
      values.push_back(value);
  }
  if (values.empty()) return nullptr;
  return values.size() == 1 ? values[0] : values;
}

Json param_json(const SpecField& field, const ParamSpec& param) {
  if (field.kind == SpecFieldKind::kRange) return {bound(param.minimum), bound(param.maximum)};
  return param.has_default ? bound(param.default_value) : Json(nullptr);
}

Json permute_json(const PermuteSpec& permute) {
  std::string name(name_of(permute.order));
  if (permute.order == TokenOrder::kNone) return nullptr;
  if (permute.order == TokenOrder::kExternal) return name;
  Json object = Json::object();
  object[name] = {permute.t, permute.h, permute.w};
  if (permute.cube_t > 1 || permute.cube_h > 1 || permute.cube_w > 1)
    object[std::string(kCubesKey)] = {permute.cube_t, permute.cube_h, permute.cube_w};
  return object;
}

/// As it was written where it reads names of `let`, which nodes do not know.
std::string formula_text(const Expr& expr, Site site, const std::vector<LetSymbol>& let) {
  if (let.empty() || expr.text.empty()) return print_expr(expr);
  const ParsedExpr written = parse_expr(expr.text, site, expr.parameters, {let});
  const bool is_same = written.ok() && !written.lets.empty() && written.expr == expr;
  return is_same ? expr.text : print_expr(expr);
}

/// The value of a slot; null stands for "not given".
struct SlotPrinter {
  const SpecField& field;
  const VariantSpec& spec;

  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const int* value) const {
    const bool is_auto = field.plural == Plural::kOrAuto && *value == 0;
    return is_auto ? Json(nullptr) : Json(*value);
  }
  Json operator()(const float* value) const { return f32_number(*value); }
  Json operator()(const std::string* text) const { return *text; }
  Json operator()(const bool* value) const {
    if (field.kind == SpecFieldKind::kEnum)
      return *value ? Json(field.names.back()) : Json(nullptr);
    return *value;
  }
  Json operator()(const std::optional<float>* value) const {
    return *value ? f32_number(**value) : Json(nullptr);
  }
  Json operator()(const Expr* expr) const {
    return expr->empty() ? Json(nullptr) : Json(formula_text(*expr, field.site, spec.let));
  }
  Json operator()(const std::vector<ParamDim>* shape) const { return print_shape(*shape); }
  Json operator()(const ParamSpec* param) const { return param_json(field, *param); }
  Json operator()(const Summary* summary) const { return name_of(*summary); }
  Json operator()(const PermuteSpec* permute) const { return permute_json(*permute); }
  Json operator()(const SubsetFlags& flags) const {
    Json names = Json::array();
    for (std::size_t n = 0; n < field.names.size(); ++n)
      if (*flags[n]) names.push_back(field.names[n]);
    return names.empty() ? Json(nullptr) : names;
  }
  template <class T>
  Json operator()(const std::optional<T>* object) const {
    return object->has_value() ? Json::object() : Json(nullptr);
  }
  template <class T>
  Json operator()(const Choice<T>* choice) const {
    return choice_json(field, *choice);
  }
  template <class Enum>
  requires std::is_enum_v<Enum> Json operator()(const Enum* value) const {
    return field.names[static_cast<std::size_t>(*value)];
  }
};

Json value_json(const SpecField& field, const SpecDraft& draft) {
  if (field.slot == nullptr) return nullptr;
  return std::visit(SlotPrinter{field, *draft.spec}, field.slot(draft));
}

Json object_json(std::string_view path, const SpecDraft& draft, const SpecDraft& plain);

/// One object, or a list of them where there are several.
Json steps_json(const SpecField& field, const SpecDraft& draft, const SpecDraft& plain) {
  PredictorSpec& last = *draft.spec->predictor;
  Json steps = Json::array();
  for (PredictorSpec& step : last.before)
    steps.push_back(object_json(field.path, {.spec = draft.spec, .step = &step}, plain));
  steps.push_back(object_json(field.path, {.spec = draft.spec, .step = &last}, plain));
  return last.before.empty() ? steps[0] : steps;
}

/// A branch says what it has in another way than the spec.
Json branches_json(const SpecDraft& draft, const SpecDraft& plain) {
  Json branches = Json::array();
  for (VariantSpec& branch : draft.spec->branches) {
    SpecDraft base = plain;
    base.spec->attention = draft.spec->attention;
    branches.push_back(object_json("branches.*", {.spec = &branch}, base));
    base.spec->attention = AttentionSpec{};
  }
  return branches;
}

/// Members of the object at `path` that differ from those of a spec that says nothing.
Json object_json(std::string_view path, const SpecDraft& draft, const SpecDraft& plain) {
  Json object = Json::object();
  for (const SpecField* member : members_of(path)) {
    const std::string key(key_of(*member));
    const SpecField* field = find_meant_field(path, key);
    if (field->kind == SpecFieldKind::kBranches) {
      if (!draft.spec->branches.empty()) object[key] = branches_json(draft, plain);
    } else if (field->kind == SpecFieldKind::kParams) {
      for (ParamSpec& param : draft.spec->params)
        object[key][param.symbol.name] =
            object_json("params.*", {.spec = draft.spec, .param = &param}, plain);
    } else if (field->kind == SpecFieldKind::kLet) {
      for (const LetSymbol& symbol : draft.spec->let) object[key][symbol.name] = symbol.expr.text;
    } else if (field->kind == SpecFieldKind::kObject) {
      const bool may_be_absent = field->slot != nullptr;
      if (may_be_absent && value_json(*field, draft).is_null()) continue;
      if (field->most_steps > 1) {
        object[key] = steps_json(*field, draft, plain);
        continue;
      }
      const Json members = object_json(field->path, draft, plain);
      if (may_be_absent || !members.empty()) object[key] = members;
    } else {
      const Json value = value_json(*field, draft);
      const bool said = field->required || value != value_json(*field, plain);
      if (said && !value.is_null()) object[key] = value;
    }
  }
  return object;
}

}  // namespace

std::string print_spec(const VariantSpec& spec) {
  VariantSpec copy = spec;  // slots point into a spec that may be written
  VariantSpec plain;
  plain.let = spec.let;
  plain.gate.emplace();
  plain.predictor.emplace().estimate.emplace().index.emplace();
  ParamSpec plain_param;
  const SpecDraft plain_draft = {.spec = &plain, .param = &plain_param, .step = &*plain.predictor};
  const Json json = object_json("", {.spec = &copy}, plain_draft);
  return layout_json(json.dump());
}

}  // namespace lacuna
