// Drops expressions that change nothing: a mask or reference that is always true, an exclusion that
// never is, a score that is `s`, a sink of -inf, an exemption that is never true, a gate that never
// skips, a decision that keeps every tile. Parameters stay, used or not: their index is the
// caller's.
#include <limits>

#include "compiler/expr/text/parse.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

bool is_constant_expr(const Expr& expr, bool value) {
  return !expr.empty() && is_constant(expr, value ? 1 : 0);
}

bool is_identity_score(const Expr& score) {
  return !score.empty() && is_variable(score.root(), Variable::kS);
}

/// exp of it is 0.
bool is_no_logit(const Expr& sink) {
  return !sink.empty() && sink.root().op == ExprOp::kLiteral &&
         sink.root().literal == -std::numeric_limits<double>::infinity();
}

void drop_trivial_gate(std::optional<Gate>& gate) {
  if (gate && (is_constant_expr(gate->skip, false) || is_constant_expr(gate->exempt, true)))
    gate.reset();
  if (gate && is_constant_expr(gate->exempt, false)) gate->exempt = {};
}

/// The select whose bits a value holds, or whose lists; null for the caller's lists.
const Select* decision_behind(const Program& program, int value) {
  if (value < 0) return nullptr;
  const Op& op = definition_of(program, value).op;
  if (const auto* compact = std::get_if<Compact>(&op))
    return decision_behind(program, compact->bits);
  return std::get_if<Select>(&op);
}

/// Without lists attend visits what the mask leaves visible: just that is kept here.
void drop_trivial_decision(Program& program) {
  Attend& attend = attend_of(program);
  for (const int value : {attend.columns, attend.list_indices}) {
    const Select* select = decision_behind(program, value);
    if (select == nullptr || !is_constant_expr(select->keep, true)) continue;
    attend.columns = attend.list_indices = attend.list_counts = -1;
    attend.keep_k = 0;
  }
}

}  // namespace

Program drop_trivial(Program program, const PassContext&) {
  for (Node& node : program.nodes) {
    std::visit(
        []<class T>(T& op) {
          if constexpr (requires { op.mask; }) {
            if (is_constant_expr(op.mask, true)) op.mask = {};
          }
        },
        node.op);
    if (auto* estimate = std::get_if<Estimate>(&node.op)) {
      if (is_constant_expr(estimate->reference, true)) estimate->reference = {};
      if (is_constant_expr(estimate->exclude, false)) estimate->exclude = {};
    }
  }
  Attend& attend = attend_of(program);
  if (is_identity_score(attend.score)) attend.score = {};
  if (is_no_logit(attend.sink)) attend.sink = {};
  drop_trivial_gate(attend.gate);
  drop_trivial_decision(program);
  return program;
}

}  // namespace lacuna
