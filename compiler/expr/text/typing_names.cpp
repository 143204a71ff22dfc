// What a name of a formula stands for at its site: a variable, a parameter, or a part that `let`
// defines; and what to say of one that stands for nothing. Part of the parser.
#include <algorithm>
#include <vector>

#include "compiler/diag/other_words.hpp"
#include "compiler/expr/text/typing.hpp"

namespace lacuna {

const ParamSymbol* Typing::find_parameter(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const ParamSymbol& p) { return p.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

std::string Typing::offered_variables() const {
  std::string variables = std::string(info(site_).name) + " reads";
  for (const VariableInfo& row : all_variables()) {
    if (offers(site_, row.variable)) variables += " " + std::string(row.name);
  }
  return variables;
}

std::vector<std::string> Typing::offered_notes() const {
  std::vector<std::string> notes = {offered_variables()};
  std::string parameters;
  for (const ParamSymbol& symbol : parameters_) {
    parameters += (parameters.empty() ? "parameters: " : ", ") + symbol.name + " (" +
                  print_shape(symbol) + ")";
  }
  if (!parameters.empty()) notes.push_back(std::move(parameters));
  std::string lets;
  for (const LetSymbol& symbol : lets_.all.first(lets_.known))
    lets += (lets.empty() ? "let: " : ", ") + symbol.name;
  if (!lets.empty()) notes.push_back(std::move(lets));
  return notes;
}

/// What a variable is that this site does not have, where it can be read, and what to read here.
void Typing::explain_variable(const VariableInfo& variable, ExprError& error) const {
  std::string sites;
  for (const SiteInfo& row : all_sites()) {
    const bool is_field =
        row.site != Site::kTile && row.site != Site::kLaunch && row.site != Site::kLet;
    if (is_field && offers(row.site, variable.variable))
      sites += (sites.empty() ? "" : ", ") + std::string(row.name);
  }
  error.notes.push_back(std::string(variable.name) + " is the " + std::string(variable.doc) +
                        (sites.empty() ? "" : "; it can be read in " + sites));
  const bool of_tiles = offers(site_, Variable::kK0);
  if (of_tiles && variable.variable == Variable::kQ)
    error.helps.emplace_back("a tile has the queries `q0` to `q1`");
  else if (of_tiles && variable.variable == Variable::kK)
    error.helps.emplace_back("a tile has the keys `k0` to `k1`");
  else if (site_ == Site::kGate)
    error.helps.emplace_back("of the scores of a tile a gate knows the largest, `tile_max`");
}

/// Once for each name of a formula.
Operand Typing::unknown_name(std::string_view name, std::uint32_t begin, std::uint32_t end) {
  if (std::ranges::find(unknown_names_, name) == unknown_names_.end()) {
    unknown_names_.emplace_back(name);
    report_unknown(name, begin, end);
  }
  return {-1, begin, end};
}

void Typing::report_unknown(std::string_view name, std::uint32_t begin, std::uint32_t end) {
  if (const OperatorInfo* function = find_function(name)) {
    ExprError& error = report(Code::kExprSyntax, begin, end, quoted(name) + " is a function");
    error.helps.push_back("write " +
                          std::string(function->doc.substr(0, function->doc.find(')') + 1)));
    return;
  }
  if (const VariableInfo* variable = find_variable(name)) {
    ExprError& error = report(Code::kExprUnknownName, begin, end,
                              quoted(name) + " cannot be read in " + std::string(info(site_).name));
    explain_variable(*variable, error);
    for (std::string& note : offered_notes()) error.notes.push_back(std::move(note));
    return;
  }
  std::vector<std::string> candidates = {"true", "false", "inf", "and", "or", "not"};
  for (const VariableInfo& row : all_variables()) {
    if (offers(site_, row.variable)) candidates.emplace_back(row.name);
  }
  for (const ParamSymbol& symbol : parameters_) candidates.push_back(symbol.name);
  for (std::size_t n = 0; n < lets_.all.size(); ++n)  // a later one is answered with its place
    if (site_ != Site::kLet || n != lets_.known) candidates.push_back(lets_.all[n].name);
  const std::string of_site = site_ == Site::kLet ? "" : " of " + std::string(info(site_).name);
  ExprError& error = report(Code::kExprUnknownName, begin, end,
                            quoted(name) + " is neither a variable" + of_site + " nor a parameter" +
                                (lets_.all.empty() ? "" : " nor a name of let"));
  error.notes = offered_notes();
  const std::string nearest = nearest_word(name, candidates);
  if (!nearest.empty())
    error.helps.push_back("did you mean " + quoted(nearest) + "?");
  else if (std::string otherwise = said_otherwise(name); !otherwise.empty())
    error.helps.push_back(std::move(otherwise));
  else
    error.helps.push_back("what a caller passes is declared: \"params\": { \"" + std::string(name) +
                          "\": { \"shape\": \"scalar\" } }");
}

Operand Typing::not_a_function(std::string_view name, std::uint32_t begin, std::uint32_t end) {
  ExprError& error =
      report(Code::kExprUnknownName, begin, end, quoted(name) + " is not a function");
  if (const ParamSymbol* symbol = find_parameter(name)) {
    if (symbol->shape.empty())
      error.helps.push_back(quoted(name) + " is a scalar parameter: write `" + std::string(name) +
                            "`");
    else
      error.helps.push_back(quoted(name) + " is a parameter; indices stand in brackets: `" +
                            std::string(name) + "[...]`");
    return {-1, begin, end};
  }
  if (find_let(name)) {
    error.helps.push_back(quoted(name) + " is defined by let: write `" + std::string(name) + "`");
    return {-1, begin, end};
  }
  std::vector<std::string> functions;
  std::string list = "functions:";
  for (const OperatorInfo& row : all_operators()) {
    if (row.notation != Notation::kCall) continue;
    functions.emplace_back(row.spelling);
    list += " " + std::string(row.spelling);
  }
  error.notes.push_back(std::move(list));
  if (std::string otherwise = said_otherwise(name); !otherwise.empty())
    error.helps.push_back(std::move(otherwise));
  else if (const std::string nearest = nearest_word(name, functions); !nearest.empty())
    error.helps.push_back("did you mean " + quoted(nearest) + "?");
  return {-1, begin, end};
}

Operand Typing::name(std::string_view name, std::uint32_t begin, std::uint32_t name_end) {
  if (const VariableInfo* variable = find_variable(name);
      variable && offers(site_, variable->variable)) {
    return located(builder_.variable(variable->variable), begin, name_end);
  }
  if (const ParamSymbol* symbol = find_parameter(name)) {
    return parameter(*symbol, {}, begin, name_end);
  }
  if (const std::optional<std::size_t> let = find_let(name)) return defined(*let, begin, name_end);
  return unknown_name(name, begin, name_end);
}

Operand Typing::indexed(std::string_view name, std::uint32_t begin, std::uint32_t name_end,
                        std::span<const Operand> indices, std::uint32_t end) {
  if (const ParamSymbol* symbol = find_parameter(name)) {
    return parameter(*symbol, indices, begin, end);
  }
  const VariableInfo* variable = find_variable(name);
  if (variable && offers(site_, variable->variable)) {
    report(Code::kExprIndex, begin, end, quoted(name) + " is a variable and has no indices")
        .helps.push_back("write `" + std::string(name) + "`: it is the " +
                         std::string(variable->doc));
    return {-1, begin, end};
  }
  if (find_let(name))
    report(Code::kExprIndex, begin, end, quoted(name) + " is a name of let and has no indices")
        .helps.push_back("write `" + std::string(name) +
                         "`; what has indices is a parameter: write them in its definition");
  else
    unknown_name(name, begin, name_end);
  return {-1, begin, end};
}

}  // namespace lacuna
