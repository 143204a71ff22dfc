#include "runtime/engine/signature.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "cache/key.hpp"
#include "compiler/expr/expr_tables.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity.
Json bound_json(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json param_json(const ParamSpec& param) {
  Json shape = Json::array();
  for (const ParamDim& dim : param.symbol.shape) shape.push_back(name_of(dim));
  Json json = {{"name", param.symbol.name},
               {"dtype", param.symbol.type == ExprType::kI32 ? "i32" : "f32"},
               {"shape", std::move(shape)},
               {"minimum", bound_json(param.minimum)},
               {"maximum", bound_json(param.maximum)}};
  if (param.has_default) json["default"] = bound_json(param.default_value);
  json["unit"] = param.unit;
  json["doc"] = param.doc;
  return json;
}

}  // namespace

std::string spec_digest(const VariantSpec& spec) {
  return cache::sha256_hex(print_spec(without_let(spec)));
}

Json signature_json(const Program& program, const LaunchContract& contract) {
  Json tensors = Json::array();
  for (const Node& node : program.nodes) {
    if (const Input* input = std::get_if<Input>(&node.op)) tensors.push_back(input->name);
  }
  Json parameters = Json::array();
  for (const ParamSpec& param : contract.params) parameters.push_back(param_json(param));
  Json signature = {{"tensors", std::move(tensors)},
                    {"parameters", std::move(parameters)},
                    {"lse", contract.has_lse},
                    {"keeps_selection", contract.keeps_selection}};
  if (contract.summary_tile > 0)
    signature["summaries"] = {{"tile_k", contract.summary_tile},
                              {"elements", contract.summary_elements}};
  return signature;
}

}  // namespace lacuna
