// Expr -> CUDA C++. Reads as a person would write it; what C++ lacks, or leaves undefined, are
// calls into templates/args/expr.cuh.
#include "compiler/expr/text/print_cuda.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "compiler/expr/bounds/ranges.hpp"
#include "compiler/expr/nodes/deciding_nodes.hpp"
#include "compiler/expr/number_text.hpp"
#include "compiler/expr/rounded_down.hpp"
#include "compiler/expr/text/repeated_parts.hpp"

namespace lacuna {
namespace {

// Binding strength in C++, loosest first.
enum Precedence : std::uint8_t {
  kTernary,
  kLogicalOr,
  kLogicalAnd,
  kBitwiseOr,
  kBitwiseXor,
  kBitwiseAnd,
  kEquality,
  kRelation,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

struct Spelling {
  std::string_view text;
  Precedence precedence;
};

/// Operators that C++ has, as infix.
Spelling infix(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return {"+", kSum};
    case ExprOp::kSubtract:
      return {"-", kSum};
    case ExprOp::kMultiply:
      return {"*", kProduct};
    case ExprOp::kDivide:
      return {"/", kProduct};
    case ExprOp::kBitAnd:
      return {"&", kBitwiseAnd};
    case ExprOp::kBitXor:
      return {"^", kBitwiseXor};
    case ExprOp::kBitOr:
      return {"|", kBitwiseOr};
    case ExprOp::kLess:
      return {"<", kRelation};
    case ExprOp::kLessEqual:
      return {"<=", kRelation};
    case ExprOp::kGreater:
      return {">", kRelation};
    case ExprOp::kGreaterEqual:
      return {">=", kRelation};
    case ExprOp::kEqual:
      return {"==", kEquality};
    case ExprOp::kNotEqual:
      return {"!=", kEquality};
    case ExprOp::kAnd:
      return {"&&", kLogicalAnd};
    case ExprOp::kOr:
      return {"||", kLogicalOr};
    default:
      return {"", kPrimary};
  }
}

/// Of an operator on numbers. `approximates`: nothing depends on the last digits of its value.
std::string_view function(ExprOp op, bool is_f32, bool approximates) {
  switch (op) {
    case ExprOp::kToF32:
      return "float";
    case ExprOp::kMin:
      return is_f32 ? "fminf" : "min";
    case ExprOp::kMax:
      return is_f32 ? "fmaxf" : "max";
    case ExprOp::kAbs:
      return is_f32 ? "fabsf" : "abs";
    case ExprOp::kExp:
      return "lacuna::exp_approx";
    case ExprOp::kExp2:
      return "lacuna::exp2_approx";
    case ExprOp::kLog:
      return "lacuna::log_approx";
    case ExprOp::kLog2:
      return "lacuna::log2_approx";
    case ExprOp::kSqrt:
      return approximates ? "lacuna::sqrt_approx" : "sqrtf";
    case ExprOp::kTanh:
      return approximates ? "lacuna::fast_tanh" : "lacuna::tanh_approx";
    case ExprOp::kFloor:
      return "floorf";
    case ExprOp::kCeil:
      return "ceilf";
    case ExprOp::kFloorDivide:
      return "lacuna::floor_divide";
    case ExprOp::kModulo:
      return "lacuna::modulo";
    case ExprOp::kShiftLeft:
      return "lacuna::shift_left";
    case ExprOp::kShiftRight:
      return "lacuna::shift_right";
    case ExprOp::kToI32:
      return is_f32 ? "lacuna::to_i32" : "int";
    case ExprOp::kHash:
      return "lacuna::hash";
    default:
      return "lacuna::bit_length";
  }
}

std::string_view wrapping_function(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return "lacuna::wrap_add";
    case ExprOp::kSubtract:
      return "lacuna::wrap_subtract";
    case ExprOp::kMultiply:
      return "lacuna::wrap_multiply";
    default:
      return "";
  }
}

std::string print_cuda_f32(double value) {
  if (std::isinf(value)) return value < 0 ? "-lacuna::kInfinity" : "lacuna::kInfinity";
  return f32_text(static_cast<float>(value)) + "f";
}

std::string print_literal(const ExprNode& node) {
  switch (node.type) {
    case ExprType::kF32:
      return print_cuda_f32(node.literal);
    case ExprType::kBool:
      return node.literal != 0 ? "true" : "false";
    default:
      break;
  }
  const auto value = static_cast<std::int32_t>(node.literal);
  // C++ has no literal for it: 2147483648 is no int.
  if (value == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
  return std::to_string(value);
}

class CudaPrinter {
 public:
  CudaPrinter(const Expr& expr, const CudaNames& names)
      : expr_(expr), names_(names), decides_(deciding_nodes(expr)) {
    ranges_.reserve(expr.nodes.size());
    for (const ExprNode& node : expr.nodes) ranges_.push_back(range_of(node));
  }

  CudaBody print_body(const std::string& prefix) {
    prefix_ = prefix;
    local_names_.resize(expr_.nodes.size());
    const auto root = static_cast<std::int32_t>(expr_.nodes.size()) - 1;
    std::vector<std::string> locals;
    for (const std::int32_t id : repeated_below(root)) locals.push_back(declare(id));
    CudaBody body(print(root, kTernary));
    body.locals = std::move(locals);
    return body;
  }

  std::string print(std::int32_t id, Precedence precedence) {
    if (std::string name = name_of(id); !name.empty()) return name;
    const ExprNode& node = at(id);
    const auto [text, own] = print_node(node);
    return own < precedence ? "(" + text + ")" : text;
  }

  /// A parameter and its indices, as arguments of a call.
  std::string print_element(const ExprNode& node) {
    std::string text = names_.parameter(expr_.parameters[node.symbol]);
    for (std::size_t d = 0; d < node.children.size() && node.children[d] >= 0; ++d)
      text += ", " + print(node.children[d], kTernary);
    return text;
  }

 private:
  struct Printed {
    std::string text;
    Precedence precedence;
  };

  /// Nodes whose values become constants before the part below `root` is printed; operands first.
  std::vector<std::int32_t> repeated_below(std::int32_t root) const {
    std::vector<bool> is_known;
    for (std::size_t id = 0; id < expr_.nodes.size(); ++id)
      is_known.push_back(!local_names_[id].empty() ||
                         !known_name(static_cast<std::int32_t>(id)).empty());
    const std::vector<bool> is_repeated = repeated_parts(expr_, root, is_known);
    std::vector<std::int32_t> repeated;
    for (std::int32_t id = 0; id <= root; ++id)
      if (is_repeated[static_cast<std::size_t>(id)]) repeated.push_back(id);
    return repeated;
  }

  std::string declare(std::int32_t id) {
    const ExprNode& node = at(id);
    const std::string name = prefix_ + std::to_string(locals_made_++);
    std::string text = "const " + std::string(cuda_name(node.type)) + " " + name + " = " +
                       print_node(node).text + ";";
    local_names_[static_cast<std::size_t>(id)] = name;
    return text;
  }

  /// What is asked for only on one side of a condition. Constants of its own are in a function that
  /// is called there, so that the other side does not work them out.
  std::string print_side(std::int32_t id, Precedence precedence) {
    if (local_names_.empty() || !name_of(id).empty()) return print(id, precedence);
    const std::vector<std::int32_t> repeated = repeated_below(id);
    if (repeated.empty()) return print(id, precedence);
    std::string text = "[&] { ";
    for (const std::int32_t part : repeated) text += declare(part) + " ";
    text += "return " + print(id, kTernary) + "; }()";
    for (const std::int32_t part : repeated) local_names_[static_cast<std::size_t>(part)].clear();
    return text;
  }

  /// "": the node has none, and its text is made of its operands.
  std::string name_of(std::int32_t id) const {
    const bool is_local =
        !local_names_.empty() && !local_names_[static_cast<std::size_t>(id)].empty();
    return is_local ? local_names_[static_cast<std::size_t>(id)] : known_name(id);
  }

  std::string known_name(std::int32_t id) const {
    return names_.known ? names_.known(id) : std::string();
  }

  const ExprNode& at(std::int32_t id) const { return expr_.nodes[static_cast<std::size_t>(id)]; }
  std::size_t index_of(const ExprNode& node) const {
    return static_cast<std::size_t>(&node - expr_.nodes.data());
  }
  std::string_view function_of(const ExprNode& node) const {
    const bool approximates =
        names_.approximates && (node.op == ExprOp::kTanh || !decides_[index_of(node)]);
    return function(node.op, at(node.children[0]).type == ExprType::kF32, approximates);
  }

  /// The range of a node's value before it wraps.
  ValueRange range_of(const ExprNode& node) const {
    std::array<ValueRange, kMaxParamRank> ranges;
    std::size_t count = 0;
    for (; count < ranges.size() && node.children[count] >= 0; ++count) {
      const std::int32_t id = node.children[count];
      ranges[count] = wrapped_range(at(id).type, ranges_[static_cast<std::size_t>(id)]);
    }
    const std::size_t first = node.op == ExprOp::kSelect ? 1 : 0;
    const ExprType operand = count > 0 ? at(node.children[first]).type : node.type;
    return node_range(node, operand, {ranges.data(), count});
  }

  bool wraps(const ExprNode& node) const {
    return node.type == ExprType::kI32 && !fits_i32(ranges_[index_of(node)]);
  }

  Printed print_node(const ExprNode& node) {
    switch (node.op) {
      case ExprOp::kLiteral:
        return {print_literal(node), node.literal < 0 ? kUnary : kPrimary};
      case ExprOp::kVariable:
        return {names_.variable(static_cast<Variable>(node.symbol)), kPrimary};
      case ExprOp::kParameter:
        return {"lacuna::at(" + print_element(node) + ")", kPrimary};
      case ExprOp::kNot:
        return {"!" + print(node.children[0], kUnary), kUnary};
      case ExprOp::kNegate:
        return print_negation(node);
      case ExprOp::kSelect:
        return print_select(node);
      case ExprOp::kFloorDivide:
      case ExprOp::kModulo:
        return {print_rounded_division(node), kPrimary};
      case ExprOp::kSubtract:
        if (is_rounded_down(expr_, node) && prepared_divisor(at(node.children[1])).empty())
          return {call("lacuna::round_down", at(node.children[1])), kPrimary};
        break;
      case ExprOp::kDivide:
        if (divides_by_constant(node)) return {call("lacuna::divide_by", node), kPrimary};
        if (names_.approximates && !decides_[index_of(node)])
          return {call("lacuna::divide_approx", node), kPrimary};
        break;
      default:
        break;
    }
    if (wraps(node)) {
      if (const auto name = wrapping_function(node.op); !name.empty()) {
        return {call(name, node), kPrimary};
      }
    }
    const Spelling sign = infix(node.op);
    if (sign.text.empty()) return {call(function_of(node), node), kPrimary};
    const auto tighter = static_cast<Precedence>(sign.precedence + 1);
    const bool may_end = node.op == ExprOp::kAnd || node.op == ExprOp::kOr;
    const std::string left = print(node.children[0], sign.precedence);
    const std::string right =
        may_end ? print_side(node.children[1], tighter) : print(node.children[1], tighter);
    return {left + " " + std::string(sign.text) + " " + right, sign.precedence};
  }

  /// One operand after the other: that is the order in which constants are counted.
  Printed print_select(const ExprNode& node) {
    const std::string condition = print(node.children[0], kLogicalOr);
    const std::string if_true = print_side(node.children[1], kLogicalOr);
    const std::string if_false = print_side(node.children[2], kTernary);
    return {condition + " ? " + if_true + " : " + if_false, kTernary};
  }

  std::string call(std::string_view name, const ExprNode& node) {
    std::string text = std::string(name) + "(";
    for (std::size_t n = 0; n < node.children.size() && node.children[n] >= 0; ++n) {
      text += (n > 0 ? ", " : "") + print(node.children[n], kTernary);
    }
    return text + ")";
  }

  Printed print_negation(const ExprNode& node) {
    if (wraps(node)) {
      return {"lacuna::wrap_subtract(0, " + print(node.children[0], kTernary) + ")", kPrimary};
    }
    const std::string inner = print(node.children[0], kUnary);
    return {(inner.front() == '-' ? "-(" + inner + ")" : "-" + inner), kUnary};  // not `--x`
  }

  /// Of a quotient or remainder; "": there is none.
  std::string prepared_divisor(const ExprNode& node) const {
    return names_.divisor ? names_.divisor(node.children[1]) : std::string();
  }

  std::string print_rounded_division(const ExprNode& node) {
    const std::string name(function_of(node));
    const ExprNode& divisor = at(node.children[1]);
    if (const std::string prepared = prepared_divisor(node); !prepared.empty())
      return name + "(" + print(node.children[0], kTernary) + ", " + prepared + ")";
    if (divisor.op != ExprOp::kLiteral || divisor.literal <= 0) return call(name, node);
    return name + "<" + print_literal(divisor) + ">(" + print(node.children[0], kTernary) + ")";
  }

  /// Powers of two are left to the compiler, which multiplies by their exact reciprocal.
  bool divides_by_constant(const ExprNode& node) const {
    const ExprNode& divisor = at(node.children[1]);
    if (divisor.op != ExprOp::kLiteral) return false;
    int exponent = 0;
    const double mantissa = std::fabs(std::frexp(divisor.literal, &exponent));
    return std::isfinite(mantissa) && mantissa > 0.5 && std::abs(exponent) < 100;
  }

  const Expr& expr_;
  const CudaNames& names_;
  std::vector<ValueRange> ranges_;
  const std::vector<bool> decides_;
  std::string prefix_;  ///< of the names of constants
  int locals_made_ = 0;
  std::vector<std::string> local_names_;  ///< of nodes that are constants where text is printed
};

}  // namespace

std::string print_cuda(const Expr& expr, const CudaNames& names) {
  return print_cuda(expr, static_cast<std::int32_t>(expr.nodes.size()) - 1, names);
}

std::string print_cuda(const Expr& expr, std::int32_t node, const CudaNames& names) {
  return CudaPrinter(expr, names).print(node, kTernary);
}

CudaBody print_cuda_body(const Expr& expr, const CudaNames& names, const std::string& prefix) {
  return CudaPrinter(expr, names).print_body(prefix);
}

std::string print_cuda_element(const Expr& element, const CudaNames& names) {
  return CudaPrinter(element, names).print_element(element.root());
}

std::string_view cuda_name(ExprType type) {
  switch (type) {
    case ExprType::kF32:
      return "float";
    case ExprType::kI32:
      return "int";
    default:
      return "bool";
  }
}

}  // namespace lacuna
