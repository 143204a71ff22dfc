#include "compiler/expr/evaluate.hpp"

#include <algorithm>
#include <vector>

#include "compiler/expr/operators.hpp"

namespace lacuna {
namespace {

Scalar read_parameter(const ExprNode& node, const ParamView& view, const Scalar* values) {
  if (!view.data) return view.value;
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < node.children.size() && node.children[d] >= 0; ++d) {
    const std::int32_t index = values[node.children[d]].i32;
    offset += std::max(std::min(index, view.extent[d] - 1), 0) * view.stride[d];
  }
  return node.type == ExprType::kF32 ? scalar(static_cast<const float*>(view.data)[offset])
                                     : scalar(static_cast<const std::int32_t*>(view.data)[offset]);
}

void evaluate_nodes(const Expr& expr, const Bindings& bindings, Scalar* values) {
  const auto child = [&](std::int32_t id) { return id < 0 ? Scalar{} : values[id]; };
  Scalar* result = values;
  for (const ExprNode& node : expr.nodes) {
    switch (node.op) {
      case ExprOp::kLiteral:
        *result = literal_value(node);
        break;
      case ExprOp::kVariable:
        *result = bindings.variables[node.symbol];
        break;
      case ExprOp::kParameter:
        *result = read_parameter(node, bindings.parameters[node.symbol], values);
        break;
      default: {
        const ExprType operand = expr.nodes[static_cast<std::size_t>(node.children[0])].type;
        *result = apply(node.op, operand, values[node.children[0]], child(node.children[1]),
                        child(node.children[2]));
      }
    }
    ++result;
  }
}

}  // namespace

Scalar evaluate(const Expr& expr, const Bindings& bindings) {
  constexpr std::size_t kOnStack = 128;
  const std::size_t count = expr.nodes.size();
  if (count <= kOnStack) {
    Scalar values[kOnStack];
    evaluate_nodes(expr, bindings, values);
    return values[count - 1];
  }
  std::vector<Scalar> values(count);
  evaluate_nodes(expr, bindings, values.data());
  return values[count - 1];
}

bool holds(const Expr& expr, const Bindings& bindings, bool otherwise) {
  return expr.empty() ? otherwise : evaluate(expr, bindings).boolean;
}

}  // namespace lacuna
