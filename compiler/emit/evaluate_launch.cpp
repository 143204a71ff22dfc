// The values of a launch, as the runtime computes them on every call.
#include "compiler/emit/launch_program.hpp"
#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/operators.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kMostNodes = 128;  ///< of an expression; sizes have a tenth of that

/// Sums and products that leave 32 bits are seen here; everything else cannot.
bool apply_checked(const ExprNode& node, const Scalar* values, ExprType operand, Scalar& result) {
  const Scalar a = values[node.children[0]];
  const Scalar b = node.children[1] < 0 ? Scalar{} : values[node.children[1]];
  const Scalar c = node.children[2] < 0 ? Scalar{} : values[node.children[2]];
  if (node.type == ExprType::kI32) {
    if (node.op == ExprOp::kAdd) return !__builtin_add_overflow(a.i32, b.i32, &result.i32);
    if (node.op == ExprOp::kSubtract) return !__builtin_sub_overflow(a.i32, b.i32, &result.i32);
    if (node.op == ExprOp::kMultiply) return !__builtin_mul_overflow(a.i32, b.i32, &result.i32);
  }
  result = apply(node.op, operand, a, b, c);
  return true;
}

bool evaluate_checked(const Expr& expr, const Bindings& bindings, std::int32_t& result) {
  if (expr.nodes.size() > kMostNodes) return false;
  Scalar values[kMostNodes];
  Scalar* next = values;
  for (const ExprNode& node : expr.nodes) {
    if (node.op == ExprOp::kLiteral) {
      *next = literal_value(node);
    } else if (node.op == ExprOp::kVariable) {
      *next = bindings.variables[node.symbol];
    } else {
      const ExprType operand = expr.nodes[static_cast<std::size_t>(node.children[0])].type;
      if (!apply_checked(node, values, operand, *next)) return false;
    }
    ++next;
  }
  result = next[-1].i32;
  return true;
}

}  // namespace

bool evaluate_launch_values(const LaunchProgram& program, const LaunchShape& shape,
                            std::int32_t* values, std::int32_t sm_count) {
  Bindings bindings;
  bindings.set(Variable::kNB, launch_entries(program, shape));
  bindings.set(Variable::kNH, shape.n_h);
  bindings.set(Variable::kNHKv, shape.n_h_kv);
  bindings.set(Variable::kNSequences, shape.n_b);
  bindings.set(Variable::kNQ, shape.n_q);
  bindings.set(Variable::kNK, shape.n_k);
  bindings.set(Variable::kSmCount, sm_count);
  bool fits = true;
  for (std::size_t i = 0; i < program.values.size() && fits; ++i) {
    const LaunchValue& value = program.values[i];
    fits = value.expr.empty()
               ? !__builtin_add_overflow(values[value.first], values[value.second], &values[i])
               : evaluate_checked(value.expr, bindings, values[i]);
  }
  return fits;
}

}  // namespace lacuna
