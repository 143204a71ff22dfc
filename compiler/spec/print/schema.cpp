// The field table as a JSON Schema, draft-07.
#include <nlohmann/json.hpp>

#include "compiler/spec/json/json_layout.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/bands.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

Json names_json(const SpecField& field) {
  Json names = Json::array();
  for (const std::string_view name : field.names) names.push_back(name);
  return {{"enum", names}};
}

Json number_json(const SpecField& field) {
  return {{"type", "number"}, {"minimum", field.minimum}, {"maximum", field.maximum}};
}

Json bound_json(const SpecField& field) {
  return {{"anyOf", {number_json(field), {{"enum", {"inf", "-inf"}}}}}};
}

Json integer_json(const SpecField& field) {
  Json values = {{"type", "integer"},
                 {"enum", std::vector<int>(field.values.begin(), field.values.end())}};
  if (field.maximum == 0) return values;
  Json range = {{"type", "integer"},
                {"minimum", static_cast<int>(field.minimum)},
                {"maximum", static_cast<int>(field.maximum)}};
  if (field.multiple != 1) range["multipleOf"] = field.multiple;
  return field.values.empty() ? range : Json{{"anyOf", {values, range}}};
}

/// A name, or an object with one of the grids.
Json token_order_json(const SpecField& field) {
  const Json side = {{"type", "integer"}, {"minimum", 1}, {"maximum", kLongestSide}};
  const Json sides = {{"type", "array"}, {"items", side}, {"minItems", 3}, {"maxItems", 3}};
  Json forms = Json::array({names_json(field)});
  for (const std::string_view grid : field.grids) {
    const std::string name(grid);
    forms.push_back(
        {{"type", "object"},
         {"required", Json::array({name})},
         {"properties", {{kCommentKey, {{"type", "string"}}}, {name, sides}, {kCubesKey, sides}}},
         {"additionalProperties", false}});
  }
  return {{"anyOf", forms}};
}

Json set_of(const Json& item) {
  return {{"type", "array"}, {"items", item}, {"minItems", 1}, {"uniqueItems", true}};
}

Json object_json(std::string_view path);

/// An object whose keys are names of the author's choice.
Json named_json(const Json& member) {
  return {{"type", "object"},
          {"properties", {{kCommentKey, {{"type", "string"}}}}},
          {"patternProperties", {{kParamNamePattern, member}}},
          {"additionalProperties", false}};
}

/// One value of the field.
Json one_json(const SpecField& field) {
  switch (field.kind) {
    case SpecFieldKind::kObject:
      return object_json(field.path);
    case SpecFieldKind::kParams:
      return named_json(object_json("params.*"));
    case SpecFieldKind::kLet:
      return named_json({{"type", "string"}});
    case SpecFieldKind::kBranches:
      return {{"type", "array"},
              {"items", object_json("branches.*")},
              {"minItems", 2},
              {"maxItems", field.most_steps}};
    case SpecFieldKind::kAsRoot:
      return {
          {"allOf", Json::array({Json{{"$ref", "#/properties/" + std::string(key_of(field))}}})}};
    case SpecFieldKind::kText:
    case SpecFieldKind::kExpression:
      return {{"type", "string"}};
    case SpecFieldKind::kName:
      return {{"type", "string"}, {"pattern", kNamePattern}};
    case SpecFieldKind::kShape:
      return {{"type", "string"}, {"pattern", shape_pattern()}};
    case SpecFieldKind::kBoolean:
      return {{"type", "boolean"}};
    case SpecFieldKind::kInteger:
      return integer_json(field);
    case SpecFieldKind::kNumber:
      return number_json(field);
    case SpecFieldKind::kBound:
      return bound_json(field);
    case SpecFieldKind::kRange:
      return {{"type", "array"}, {"items", bound_json(field)}, {"minItems", 2}, {"maxItems", 2}};
    case SpecFieldKind::kEnum:
      return names_json(field);
    case SpecFieldKind::kSubset:
      return set_of(names_json(field));
    case SpecFieldKind::kSummary:
      return {{"type", "string"}, {"pattern", summary_pattern(field.side)}};
    case SpecFieldKind::kBands:
      return {{"type", "string"}, {"pattern", band_pattern()}};
    case SpecFieldKind::kTokenOrder:
      return token_order_json(field);
  }
  return {};
}

Json field_json(const SpecField& field) {
  Json json = {{"description", field.doc}};
  const Json one = one_json(field);
  Json forms = Json::array({one});
  if (field.plural == Plural::kOrListOrAuto) forms.push_back(set_of(one));
  if (field.kind == SpecFieldKind::kObject && field.most_steps > 1)
    forms.push_back(
        {{"type", "array"}, {"items", one}, {"minItems", 1}, {"maxItems", field.most_steps}});
  if (field.plural != Plural::kOne) forms.push_back({{"const", "auto"}});
  json.update(forms.size() == 1 ? one : Json{{"anyOf", forms}});
  return json;
}

Json object_json(std::string_view path) {
  Json properties = {{kCommentKey, {{"type", "string"}}}};
  Json required = Json::array();
  for (const SpecField* field : members_of(path)) {
    properties[std::string(key_of(*field))] = field_json(*field);
    if (field->required) required.push_back(key_of(*field));
  }
  Json json = {{"type", "object"}};
  if (!required.empty()) json["required"] = required;
  json["properties"] = properties;
  json["additionalProperties"] = false;
  return json;
}

}  // namespace

std::string spec_json_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"$id", "urn:lacuna:spec:1"},
                 {"title", "Lacuna spec"},
                 {"description", "A sparse-attention variant."}};
  schema.update(object_json(""));
  return layout_json(schema.dump());
}

}  // namespace lacuna
