// Expr -> canonical text. Precedences come from the operator table; promotions are not written
// where the operands imply them.
#include "compiler/expr/print_expr.hpp"

#include <cmath>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/number_text.hpp"

namespace lacuna {
namespace {

std::string print_f32(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return f32_text(static_cast<float>(value));
}

class Printer {
 public:
  explicit Printer(const Expr& expr) : expr_(expr) {}

  /// The node's text, in parentheses if it binds looser than `precedence`.
  std::string print(std::int32_t id, int precedence) const {
    const ExprNode& node = at(id);
    if (node.op == ExprOp::kToF32) return print(node.children[0], precedence);
    const std::string text = print_node(node);
    return precedence_of(node) < precedence ? "(" + text + ")" : text;
  }

 private:
  const ExprNode& at(std::int32_t id) const { return expr_.nodes[static_cast<std::size_t>(id)]; }

  static int precedence_of(const ExprNode& node) { return info(node.op).precedence; }

  std::string print_node(const ExprNode& node) const {
    switch (node.op) {
      case ExprOp::kLiteral:
        return print_literal(node);
      case ExprOp::kVariable:
        return std::string(info(static_cast<Variable>(node.symbol)).name);
      case ExprOp::kParameter:
        return print_parameter(node);
      default:
        break;
    }
    const OperatorInfo& op = info(node.op);
    const std::string spelling(op.spelling);
    switch (op.notation) {
      case Notation::kPrefix:
        return spelling + (op.op == ExprOp::kNot ? " " : "") + operand(node, 0, op.precedence);
      case Notation::kInfix:
        return operand(node, 0, op.precedence) + " " + spelling + " " +
               operand(node, 1, op.precedence + 1);
      default:
        break;
    }
    std::string text = spelling + "(";
    for (int n = 0; n < op.arity; ++n) {
      text += (n > 0 ? ", " : "") + operand(node, static_cast<std::size_t>(n), kPrecedenceOr);
    }
    return text + ")";
  }

  /// One operand. Where all numeric operands are promoted i32, nothing around them says so: the
  /// last one is then written `x * 1.0`, which parses back to a promotion.
  std::string operand(const ExprNode& node, std::size_t n, int precedence) const {
    const OperatorInfo& op = info(node.op);
    const std::size_t first = op.signature == Signature::kSelect ? 1 : 0;
    const auto last = static_cast<std::size_t>(op.arity) - 1;
    bool all_promoted = op.signature != Signature::kFloat && n == last;
    for (std::size_t m = first; all_promoted && m <= last; ++m) {
      all_promoted = at(node.children[m]).op == ExprOp::kToF32;
    }
    if (!all_promoted) return print(node.children[n], precedence);
    const std::string text = print(node.children[n], kPrecedenceProduct) + " * 1.0";
    return precedence > kPrecedenceProduct ? "(" + text + ")" : text;
  }

  static std::string print_literal(const ExprNode& node) {
    switch (node.type) {
      case ExprType::kF32:
        return print_f32(node.literal);
      case ExprType::kI32:
        return std::to_string(static_cast<std::int32_t>(node.literal));
      default:
        return node.literal != 0 ? "true" : "false";
    }
  }

  /// Indices that the site supplies by itself are not written.
  std::string print_parameter(const ExprNode& node) const {
    const ParamSymbol& symbol = expr_.parameters[node.symbol];
    std::size_t implicit = 0;
    while (implicit < symbol.shape.size() &&
           is_implicit(symbol.shape[implicit], node.children[implicit])) {
      ++implicit;
    }
    if (implicit == symbol.shape.size()) return symbol.name;
    std::string text = symbol.name;
    for (std::size_t d = implicit; d < symbol.shape.size(); ++d) {
      text += (d == implicit ? "[" : ", ") + print(node.children[d], kPrecedenceOr);
    }
    return text + "]";
  }

  bool is_implicit(const ParamDim& dim, std::int32_t index) const {
    const auto variable = info(dim.axis).index;
    return variable && is_variable(at(index), *variable);
  }

  const Expr& expr_;
};

}  // namespace

std::string print_expr(const Expr& expr) {
  if (expr.empty()) return "";
  return Printer(expr).print(static_cast<std::int32_t>(expr.nodes.size()) - 1, kPrecedenceOr);
}

}  // namespace lacuna
