// Rules of params.NAME.calibrate: what each procedure can fill and where it begins.
#include <cmath>

#include "compiler/spec/read/rule_context.hpp"

namespace lacuna {
namespace {

using Shape = std::vector<ParamDim>;

bool can_fill(Calibrate procedure, const Shape& shape) {
  if (procedure == Calibrate::kKeptTiles)
    return shape == Shape{ParamAxis::kHeads, ParamAxis::kQTiles};
  return shape.empty() || shape == Shape{ParamAxis::kHeads};
}

/// The value of a sibling is what the file says, or it is not said.
bool sound(const JsonNode& param, std::string_view key) {
  const JsonNode* node = param.find(key);
  return node == nullptr || node->usable;
}

void check_shape(const RuleContext& context, const ParamSpec& param, const JsonNode& node,
                 const std::string& label) {
  const bool per_tile = param.calibrate == Calibrate::kKeptTiles;
  Diagnostic& d = context.report(Code::kConflict, node,
                                 label + ".calibrate: \"" + std::string(name_of(param.calibrate)) +
                                     "\" fills " +
                                     (per_tile ? "only the shape \"[heads, q_tiles]\""
                                               : "the shapes \"scalar\" and \"[heads]\""));
  d.notes.emplace_back(per_tile ? "it finds one threshold for each head and query tile"
                                : "it finds one number for each head, or one for all");
  d.helps.emplace_back(per_tile ? "\"shape\": \"[heads, q_tiles]\"" : "\"shape\": \"[heads]\"");
}

/// The grid is tried at each step of the parameter before it.
bool follows_bisected(const VariantSpec& spec, const ParamSpec& param) {
  Calibrate before = Calibrate::kNone;
  for (const ParamSpec& other : spec.params) {
    if (&other == &param) break;
    before = other.calibrate;
  }
  return before == Calibrate::kBisect;
}

}  // namespace

void check_calibrate(const RuleContext& context, const ParamSpec& param,
                     const JsonNode& declaration, const std::string& label) {
  const JsonNode* node = declaration.find("calibrate");
  if (param.calibrate == Calibrate::kNone || node == nullptr || !node->usable) return;
  if (sound(declaration, "shape") && !can_fill(param.calibrate, param.symbol.shape))
    check_shape(context, param, *node, label);
  const bool has_start =
      param.has_default && std::isfinite(param.default_value) && param.default_value > 0;
  if (param.calibrate == Calibrate::kHalve && sound(declaration, "default") && !has_start) {
    Diagnostic& d = context.report(Code::kConflict, *node,
                                   label + ".calibrate: \"halve\" needs a default above 0");
    d.notes.emplace_back("the default is what is halved");
    d.helps.emplace_back("a default, or \"calibrate\": \"bisect\"");
  }
  if (param.calibrate == Calibrate::kGrid && !follows_bisected(context.spec, param)) {
    Diagnostic& d = context.report(
        Code::kConflict, *node,
        label + ".calibrate: \"grid\" needs a parameter with \"bisect\" declared right before it");
    d.notes.emplace_back("each value of the grid is tried with the best value of that parameter");
    d.helps.emplace_back("\"calibrate\": \"bisect\"");
  }
}

}  // namespace lacuna
