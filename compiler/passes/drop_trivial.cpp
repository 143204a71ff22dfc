// Drops expressions that change nothing: a mask that is always true, a score that is `s`, an
// exemption that is never true, a gate that never skips. Parameters stay, used or not: their index
// is the caller's.
#include "compiler/expr/parse.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

bool is_constant_expr(const Expr& expr, bool value) {
  return !expr.empty() && is_constant(expr, value ? 1 : 0);
}

bool is_identity_score(const Expr& score) {
  return !score.empty() && score.root().op == ExprOp::kVariable &&
         score.root().symbol == static_cast<std::uint16_t>(Variable::kS);
}

}  // namespace

Program drop_trivial(Program program, const PassContext&) {
  Attend& attend = attend_of(program);
  if (is_constant_expr(attend.mask, true)) attend.mask = {};
  if (is_identity_score(attend.score)) attend.score = {};
  if (attend.gate &&
      (is_constant_expr(attend.gate->skip, false) || is_constant_expr(attend.gate->exempt, true))) {
    attend.gate.reset();
  }
  if (attend.gate && is_constant_expr(attend.gate->exempt, false)) attend.gate->exempt = {};
  return program;
}

}  // namespace lacuna
