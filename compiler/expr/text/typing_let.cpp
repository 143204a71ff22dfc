// A name of `let` in a formula: the nodes of its definition, where the site has what they read.
// Part of the parser.
#include <algorithm>

#include "compiler/expr/text/typing.hpp"

namespace lacuna {

std::optional<std::size_t> Typing::find_let(std::string_view name) const {
  const auto found = std::ranges::find(lets_.all, name, &LetSymbol::name);
  if (found == lets_.all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - lets_.all.begin());
}

std::vector<std::size_t> Typing::lets_read() const {
  std::vector<std::size_t> read;
  for (std::size_t n = 0; n < let_nodes_.size(); ++n)
    if (let_nodes_[n] != kUnseen) read.push_back(n);
  return read;
}

Operand Typing::defined(std::size_t let, std::uint32_t begin, std::uint32_t end) {
  const Operand none = {-1, begin, end};
  let_nodes_.resize(lets_.all.size(), kUnseen);
  if (let_nodes_[let] == kUnseen) {
    let_nodes_[let] = -1;  // what there is to say of it is said once for each formula
    if (let >= lets_.known)
      report_undefined(let, begin, end);
    else if (has_variables_of(let, begin, end) && !lets_.all[let].expr.empty())
      let_nodes_[let] = copied(lets_.all[let].expr, begin, end);
  }
  return let_nodes_[let] < 0 ? none : Operand{let_nodes_[let], begin, end};
}

/// The root of another expression over the same parameters, whose nodes stand at [begin, end).
int Typing::copied(const Expr& expr, std::uint32_t begin, std::uint32_t end) {
  std::vector<int> moved;
  moved.reserve(expr.nodes.size());
  for (ExprNode node : expr.nodes) {
    node.begin = node.end = 0;  // bytes of the definition
    moved.push_back(builder_.copy(node, moved_children(node, moved)));
    builder_.locate(moved.back(), begin, end);
  }
  return moved.back();
}

/// Read by its own definition, or by that of an earlier name.
void Typing::report_undefined(std::size_t let, std::uint32_t begin, std::uint32_t end) {
  const std::string& name = lets_.all[let].name;
  const bool is_own = let == lets_.known;
  ExprError& error = report(
      Code::kExprUnknownName, begin, end,
      quoted(name) + (is_own ? " is read in its own definition" : " is defined further down"));
  error.notes.emplace_back("a definition reads the names before it alone");
  if (is_own) return;
  error.let = let;
  error.helps.push_back("define " + quoted(name) + " before " +
                        quoted(lets_.all[lets_.known].name));
}

bool Typing::has_variables_of(std::size_t let, std::uint32_t begin, std::uint32_t end) {
  const Expr& expr = lets_.all[let].expr;
  std::vector<const VariableInfo*> missing;
  std::string names;
  for (const ExprNode& node : expr.nodes) {
    if (node.op != ExprOp::kVariable || offers(site_, static_cast<Variable>(node.symbol))) continue;
    missing.push_back(&info(static_cast<Variable>(node.symbol)));
  }
  if (missing.empty()) return true;
  for (const VariableInfo* variable : missing)
    names += (names.empty()                ? ""
              : variable == missing.back() ? " and "
                                           : ", ") +
             std::string(variable->name);
  ExprError& error = report(Code::kExprUnknownName, begin, end,
                            quoted(lets_.all[let].name) + " reads " + names + ", which " +
                                std::string(info(site_).name) + " does not have");
  error.let = let;
  for (const VariableInfo* variable : missing) explain_variable(*variable, error);
  for (const ExprNode& node : expr.nodes) {  // an index that is not written
    if (node.op != ExprOp::kParameter) continue;
    const ParamSymbol& symbol = expr.parameters[node.symbol];
    for (std::size_t d = 0; d < symbol.shape.size(); ++d) {
      const auto& own = info(symbol.shape[d].axis).index;
      const ExprNode& index = expr.nodes[static_cast<std::size_t>(node.children[d])];
      if (own && is_variable(index, *own) && !offers(site_, *own))
        error.notes.push_back(std::string(info(*own).name) + " is an index of " +
                              quoted(symbol.name) + ", whose shape is " + print_shape(symbol));
    }
  }
  error.notes.push_back(offered_variables());
  return false;
}

}  // namespace lacuna
