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
  else if (site_ == Site::kMask && variable.variable == Variable::kS)
    error.helps.emplace_back(
        "a mask is asked before scores are there; in attention.score -inf leaves a key out: "
        "`select(s > 0, s, -inf)`");
  else if (site_ == Site::kWeight && variable.variable == Variable::kK)
    error.helps.emplace_back(
        "a weight is of a query; what a key weighs is a factor of its exponential: `s + log(w[k])` "
        "in attention.score");
  else if (site_ == Site::kGate)
    error.helps.emplace_back("of the scores of a tile a gate knows the largest, `tile_max`");
}

/// Once for each name of a formula.
Operand Typing::unknown_name(std::string_view name, std::uint32_t begin, std::uint32_t end,
                             std::span<const Operand> indices) {
  if (std::ranges::find(unknown_names_, name) == unknown_names_.end()) {
    unknown_names_.emplace_back(name);
    report_unknown(name, begin, end, indices);
  }
  return {-1, begin, end};
}

/// Whether a node reads any of these variables.
bool Typing::reads(int node, std::initializer_list<Variable> variables) const {
  const ExprNode& of = builder_[node];
  const bool is_one =
      std::ranges::any_of(variables, [&](Variable variable) { return is_variable(of, variable); });
  return is_one || std::ranges::any_of(of.children, [&](std::int32_t child) {
           return child >= 0 && reads(child, variables);
         });
}

/// The dimension that an index counts along, as far as the variables in it tell.
std::string Typing::dimension_of(const Operand& index) const {
  if (!index.ok()) return "32";
  const bool of_query = reads(index.node, {Variable::kQ, Variable::kQ0, Variable::kQ1});
  const bool of_key = reads(index.node, {Variable::kK, Variable::kK0, Variable::kK1});
  if (of_query != of_key) return of_query ? "n_q" : "n_k";
  if (of_query) return "32";
  if (reads(index.node, {Variable::kI})) return "q_tiles";
  if (reads(index.node, {Variable::kJ})) return "k_tiles";
  if (reads(index.node, {Variable::kH})) return "heads";
  return reads(index.node, {Variable::kB}) ? "batch" : "32";
}

/// A shape for a name that is declared nowhere, as it is read.
std::string Typing::shape_of(std::span<const Operand> indices) const {
  if (indices.empty()) return site_ == Site::kFrom ? "[heads, q_tiles, k_tiles]" : "scalar";
  std::vector<std::string> dims;
  for (const Operand& index : indices) {
    std::string dim = dimension_of(index);
    dims.push_back(std::ranges::find(dims, dim) == dims.end() ? std::move(dim) : "32");
  }
  std::string shape;
  for (const std::string& dim : dims) shape += (shape.empty() ? "[" : ", ") + dim;
  return shape + "]";
}

void Typing::report_unknown(std::string_view name, std::uint32_t begin, std::uint32_t end,
                            std::span<const Operand> indices) {
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
  std::string nearest = nearest_word(name, candidates);
  const bool is_other = nearest.size() == 1 && name.size() == 2 && name[0] != nearest[0] &&
                        synonym_among(name, {nearest}).empty();
  if (is_other) nearest = "";  // `iq`: one letter of two is no similarity
  if (!nearest.empty())
    error.helps.push_back("did you mean " + quoted(nearest) + "?");
  else if (std::string otherwise = said_otherwise(name, WordPlace::kFormula); !otherwise.empty())
    error.helps.push_back(std::move(otherwise));
  else
    error.helps.push_back("what a caller passes is declared: \"params\": { \"" + std::string(name) +
                          "\": { \"shape\": \"" + shape_of(indices) + "\" } }");
}

/// What stands in the parentheses that open there; "" where they do not close.
std::string_view Typing::arguments_behind(std::uint32_t begin) const {
  int open = 0;
  for (std::size_t at = begin; at < text_.size(); ++at) {
    open += text_[at] == '(' ? 1 : text_[at] == ')' ? -1 : 0;
    const std::size_t first = text_.find('(', begin) + 1;
    if (open == 0 && text_[at] == ')') return text_.substr(first, at - first);
  }
  return "";
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
  if (std::string otherwise = said_otherwise(name, WordPlace::kFormula); !otherwise.empty())
    error.helps.push_back(std::move(otherwise));
  else if (const std::string nearest = nearest_word(name, functions); !nearest.empty())
    error.helps.push_back("did you mean " + quoted(nearest) + "?");
  else if (const std::string_view listed = arguments_behind(end); !listed.empty())
    error.helps.push_back(
        "what a caller passes is declared in \"params\", and read in brackets: `" +
        std::string(name) + "[" + std::string(listed) + "]`");
  return {-1, begin, end};
}

Operand Typing::wrong_count(const OperatorInfo& function, std::span<const Operand> arguments,
                            std::uint32_t begin, std::uint32_t end) {
  const std::string name(function.spelling);
  const std::size_t got = arguments.size();
  ExprError& error = report(Code::kExprArguments, begin, end,
                            name + ": expected " + std::to_string(function.arity) +
                                (function.arity == 1 ? " argument" : " arguments") + ", got " +
                                std::to_string(got));
  error.notes.emplace_back(function.doc);
  if (function.op == ExprOp::kLog && got == 2)
    error.helps.push_back("to base " + source(arguments[1]) + ": `log(" + source(arguments[0]) +
                          ") / log(" + source(arguments[1]) + ")`");
  const bool chooses = function.op == ExprOp::kMin || function.op == ExprOp::kMax;
  if (chooses && got == 3)
    error.helps.push_back("write `" + name + "(" + name + "(" + source(arguments[0]) + ", " +
                          source(arguments[1]) + "), " + source(arguments[2]) + ")`");
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
    unknown_name(name, begin, name_end, indices);
  return {-1, begin, end};
}

}  // namespace lacuna
