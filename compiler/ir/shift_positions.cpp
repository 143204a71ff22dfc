#include "compiler/ir/shift_positions.hpp"

#include <optional>
#include <vector>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/fields.hpp"
#include "compiler/spec/declared_ranges.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kCount = kPositionParamNames.size();

/// What becomes of a variable: the parameter in its place, or the sum of both.
struct Shift {
  PositionParam param;
  bool is_sum;
};

/// Where a formula stands. Query tiles mean those of attend in a gate, else those of the predictor.
struct FormulaSite {
  PartKind kind;
  bool in_attend;
};

std::optional<Shift> shift_of(Variable variable, FormulaSite site) {
  using enum PositionParam;
  const bool is_of_heads = variable == Variable::kH || variable == Variable::kNH;
  if (site.kind == PartKind::kHeads && !is_of_heads) return std::nullopt;
  switch (variable) {
    case Variable::kQ:
    case Variable::kQ0:
    case Variable::kQ1:
      return Shift{kFirstQ, true};
    case Variable::kNQ:
      return Shift{kNQ, false};
    case Variable::kH:
      return Shift{kFirstH, true};
    case Variable::kNH:
      return Shift{kNH, false};
    case Variable::kI:
      return Shift{site.in_attend ? kFirstGateTile : kFirstKeepTile, true};
    case Variable::kNI:
      return Shift{site.in_attend ? kGateTiles : kKeepTiles, false};
    default:
      return std::nullopt;
  }
}

std::optional<Shift> shift_of(const ExprNode& node, FormulaSite site) {
  if (node.op != ExprOp::kVariable) return std::nullopt;
  return shift_of(static_cast<Variable>(node.symbol), site);
}

/// Is child `c` of a node an index that the formula does not write out?
bool is_site_index(const Expr& expr, const ExprNode& node, std::size_t c) {
  if (node.op != ExprOp::kParameter) return false;
  return info(expr.parameters[node.symbol].shape[c].axis).index.has_value();
}

/// Which PositionParams the formula needs.
void note_needed(const Expr& expr, FormulaSite site, std::array<bool, kCount>& needed) {
  const auto note = [&](const ExprNode& node) {
    if (const auto shift = shift_of(node, site))
      needed[static_cast<std::size_t>(shift->param)] = true;
  };
  note(expr.root());
  for (const ExprNode& node : expr.nodes) {
    for (std::size_t c = 0; c < node.children.size() && node.children[c] >= 0; ++c) {
      if (!is_site_index(expr, node, c))
        note(expr.nodes[static_cast<std::size_t>(node.children[c])]);
    }
  }
}

/// Where each PositionParam stands among the parameters; -1: not needed.
using Indices = std::array<int, kCount>;

Expr shift_formula(const Expr& expr, FormulaSite site, const Indices& indices,
                   const std::vector<ParamSymbol>& parameters) {
  ExprBuilder builder;
  return rewritten(builder, expr, parameters, [&](const ExprNode& node, ExprChildren children) {
    const auto shift = shift_of(node, site);
    const int param = shift ? indices[static_cast<std::size_t>(shift->param)] : -1;
    if (param >= 0) {
      const int by = builder.parameter(param, ExprType::kI32, kNoChildren);
      if (!shift->is_sum) return by;
      return builder.make(ExprOp::kAdd, builder.variable(static_cast<Variable>(node.symbol)), by);
    }
    for (std::size_t c = 0; c < children.size() && children[c] >= 0; ++c) {
      if (is_site_index(expr, node, c))
        children[c] = builder.variable(*info(expr.parameters[node.symbol].shape[c].axis).index);
    }
    return builder.copy(node, children);
  });
}

Diagnostic refusal(Code code, std::string message) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  return d;
}

/// Appends the needed ones; nothing with a diagnostic if that cannot be.
std::optional<Indices> append_params(const std::array<bool, kCount>& needed, Program& program,
                                     Diagnostics& diagnostics) {
  Indices indices;
  indices.fill(-1);
  for (std::size_t p = 0; p < kCount; ++p) {
    for (const ParamSpec& param : program.params) {
      if (param.symbol.name != kPositionParamNames[p]) continue;
      diagnostics.add(refusal(Code::kConflict, "params." + param.symbol.name +
                                                   ": a group passes a parameter of this name"));
      return std::nullopt;
    }
    if (!needed[p]) continue;
    indices[p] = static_cast<int>(program.params.size());
    program.params.push_back(position_param(static_cast<PositionParam>(p)));
  }
  if (program.params.size() <= kMaxParams) return indices;
  diagnostics.add(refusal(Code::kOutOfRange,
                          "params: a group passes positions as parameters, and expected at most " +
                              std::to_string(kMaxParams) + " in all, got " +
                              std::to_string(program.params.size())));
  return std::nullopt;
}

}  // namespace

Program shift_positions(Program program, PartKind kind, Diagnostics& diagnostics) {
  std::array<bool, kCount> needed{};
  const auto visit = [&](const auto& use) {
    for (Node& node : program.nodes) {
      const FormulaSite site = {kind, std::holds_alternative<Attend>(node.op)};
      for_each_formula(node.op, [&](Expr& expr) { use(expr, site); });
    }
  };
  visit([&](const Expr& expr, FormulaSite site) { note_needed(expr, site, needed); });
  const auto indices = append_params(needed, program, diagnostics);
  if (!indices) return program;
  std::vector<ParamSymbol> parameters;
  parameters.reserve(program.params.size());
  for (const ParamSpec& param : program.params) parameters.push_back(param.symbol);
  visit([&](Expr& expr, FormulaSite site) {
    expr = shift_formula(expr, site, *indices, parameters);
  });
  return program;
}

ParamSpec position_param(PositionParam param) {
  ParamSpec spec;
  spec.symbol.name = name_of(param);
  spec.symbol.type = ExprType::kI32;
  spec.minimum = 0;
  note_declared_range(spec);
  spec.has_default = false;
  return spec;
}

}  // namespace lacuna
