// Rules of let: what a name may not be called.
#include <algorithm>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/read/rule_context.hpp"

namespace lacuna {
namespace {

/// What a name means already; "" if nothing.
std::string meaning_of(const VariantSpec& spec, const std::string& name) {
  if (std::ranges::any_of(spec.params,
                          [&](const ParamSpec& param) { return param.symbol.name == name; }))
    return "a parameter of the spec";
  if (const VariableInfo* variable = find_variable(name))
    return "a variable: the " + std::string(variable->doc);
  if (const OperatorInfo* function = find_function(name))
    return "a function: " + std::string(function->doc);
  return is_reserved(name) ? "a word of formulas" : "";
}

/// A name that is free.
std::string free_name(const VariantSpec& spec, const std::string& name) {
  std::string free = name + "_part";
  const auto is_taken = [&](const LetSymbol& symbol) { return symbol.name == free; };
  while (!meaning_of(spec, free).empty() || std::ranges::any_of(spec.let, is_taken)) free += "_";
  return free;
}

}  // namespace

void check_let(const RuleContext& context) {
  for (const LetSymbol& symbol : context.spec.let) {
    const std::string meaning = meaning_of(context.spec, symbol.name);
    if (meaning.empty()) continue;
    const JsonNode& node = *context.root.find("let")->find(symbol.name);
    Diagnostic& d = context.report(
        Code::kConflict, node, "let." + symbol.name + ": \"" + symbol.name + "\" is " + meaning);
    d.span = node.key_span;
    d.notes.emplace_back("formulas would have two meanings for one name");
    d.helps.push_back("such as \"" + free_name(context.spec, symbol.name) + "\"");
  }
}

}  // namespace lacuna
