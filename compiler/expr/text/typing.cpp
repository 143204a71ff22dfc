#include "compiler/expr/text/typing.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "compiler/expr/text/conditions.hpp"

namespace lacuna {
namespace {

/// "left operand of '+'", "operand of 'not'", "argument 2 of min".
std::string role(const OperatorInfo& op, std::size_t n) {
  const std::string spelling(op.spelling);
  if (op.notation == Notation::kCall) {
    return (op.arity == 1 ? "argument" : "argument " + std::to_string(n + 1)) + " of " + spelling;
  }
  if (op.arity == 1) return "operand of '" + spelling + "'";
  return std::string(n == 0 ? "left" : "right") + " operand of '" + spelling + "'";
}

struct Expected {
  bool f32, i32, boolean;
  bool accepts(ExprType type) const {
    return type == ExprType::kF32 ? f32 : type == ExprType::kI32 ? i32 : boolean;
  }
  std::string_view text() const { return boolean ? "bool" : f32 ? "f32 or i32" : "i32"; }
};

Expected expected(Signature signature, std::size_t n) {
  switch (signature) {
    case Signature::kLogical:
      return {false, false, true};
    case Signature::kInteger:
      return {false, true, false};
    case Signature::kTruncation:
      return {true, true, false};
    case Signature::kSelect:
      return n == 0 ? Expected{false, false, true} : Expected{true, true, false};
    default:
      return {true, true, false};
  }
}

/// The way out of a wrong type.
std::string conversion_help(const Expected& wanted, ExprType got, const std::string& source) {
  if (wanted.boolean && source == "rank") return "compare it: `rank < 8` keeps the best 8";
  if (wanted.boolean && source == "mass_before")
    return "compare it: `mass_before < 0.9` keeps a share of the mass";
  if (wanted.boolean) return "compare it: `" + source + " > 0`";
  if (got == ExprType::kBool) return "make it a number: `select(" + source + ", 1, 0)`";
  return "make it an integer: `int(" + source + ")`, which rounds toward 0";
}

/// The way out of a condition where an operator takes integers.
std::string condition_help(ExprOp op, std::size_t n, const std::string& source) {
  if (op == ExprOp::kBitAnd) return "between conditions write `and`";
  if (op == ExprOp::kBitOr) return "between conditions write `or`";
  if (op == ExprOp::kBitXor) return "for one of two conditions write `(a or b) and not (a and b)`";
  if ((op == ExprOp::kFloorDivide || op == ExprOp::kModulo) && n == 1)
    return "a condition is no divisor; to choose between two: `select(" + source + ", 2, 1)`";
  return "";
}

}  // namespace

std::string print_shape(const ParamSymbol& symbol) {
  if (symbol.shape.empty()) return "scalar";
  std::string text;
  for (const ParamDim dim : symbol.shape) {
    text += (text.empty() ? "[" : ", ") + name_of(dim);
  }
  return text + "]";
}

ExprError& Typing::report(Code code, std::uint32_t begin, std::uint32_t end, std::string message) {
  return errors_.emplace_back(ExprError{code, begin, end, std::move(message), {}, {}});
}

std::string Typing::source(const Operand& operand) const {
  return std::string(text_.substr(operand.begin, operand.end - operand.begin));
}

Operand Typing::located(int node, std::uint32_t begin, std::uint32_t end) {
  builder_.locate(node, begin, end);
  return {node, begin, end};
}

Operand Typing::constant(ExprType type, double value, std::uint32_t begin, std::uint32_t end) {
  return located(builder_.literal(type, value), begin, end);
}

Operand Typing::number(std::string_view text, bool is_real, bool negative, std::uint32_t begin,
                       std::uint32_t end) {
  const char* last = text.data() + text.size();
  if (is_real) {
    float value = 0;
    if (std::from_chars(text.data(), last, value).ec == std::errc()) {
      return constant(ExprType::kF32, static_cast<double>(negative ? -value : value), begin, end);
    }
    ExprError& error = report(Code::kExprLiteral, begin, end, "number does not fit f32");
    error.notes.emplace_back("f32 holds 1.4e-45 to 3.4028235e38, and 0.0");
    error.helps.emplace_back("write 0.0 or inf");
    return {-1, begin, end};
  }
  std::int64_t value = 0;
  const bool parsed = std::from_chars(text.data(), last, value).ec == std::errc();
  const std::int64_t signed_value = negative ? -value : value;
  if (parsed && signed_value == static_cast<std::int32_t>(signed_value)) {
    return constant(ExprType::kI32, static_cast<double>(signed_value), begin, end);
  }
  ExprError& error = report(Code::kExprLiteral, begin, end, "number does not fit i32");
  error.notes.emplace_back("i32 holds -2147483648 to 2147483647");
  error.helps.push_back("write an f32 number: " + std::string(negative ? "-" : "") +
                        std::string(text) + ".0");
  return {-1, begin, end};
}

int Typing::promoted(int node) {
  return builder_[node].type == ExprType::kI32 ? builder_.make(ExprOp::kToF32, node) : node;
}

/// Whether `op` takes conditions and all of these are some.
bool Typing::are_conditions(const OperatorInfo& op, std::span<const Operand> operands) const {
  return takes_conditions(op.op) && std::ranges::all_of(operands, [&](const Operand& operand) {
           return operand.ok() && type_of(operand) == ExprType::kBool;
         });
}

/// Whether all values of `op` that are known are conditions, and it takes such: only what it
/// chooses by may be wrong then.
bool Typing::chooses_conditions(const OperatorInfo& op, std::span<const Operand> operands) const {
  const std::size_t first = op.op == ExprOp::kSelect ? 1 : 0;
  return takes_conditions(op.op) &&
         std::ranges::all_of(operands.subspan(first), [&](const Operand& operand) {
           return !operand.ok() || type_of(operand) == ExprType::kBool;
         });
}

/// `(k <= q) * (k > 3)`, `(k <= q) & (k > 3)`: one error for both. False: they are others.
bool Typing::report_conditions(const OperatorInfo& op, std::span<const Operand> operands) {
  const bool is_and = op.op == ExprOp::kMultiply || op.op == ExprOp::kBitAnd;
  const bool is_or = op.op == ExprOp::kAdd || op.op == ExprOp::kBitOr;
  if (!(is_and || is_or || op.op == ExprOp::kBitXor) ||
      !std::ranges::all_of(operands, [&](const Operand& operand) {
        return operand.ok() && type_of(operand) == ExprType::kBool;
      }))
    return false;
  const ExprOp meant = is_and ? ExprOp::kBitAnd : is_or ? ExprOp::kBitOr : op.op;
  report(Code::kExprType, operands[0].begin, operands[1].end,
         "operands of " + quoted(op.spelling) + ": expected " +
             std::string(expected(op.signature, 0).text()) + ", got bool")
      .helps.push_back(condition_help(meant, 0, ""));
  return true;
}

/// `a and b` of two integers: one error for both. False: they are others.
bool Typing::report_integers(const OperatorInfo& op, std::span<const Operand> operands) {
  const bool joins = op.op == ExprOp::kAnd || op.op == ExprOp::kOr;
  if (!joins || !std::ranges::all_of(operands, [&](const Operand& operand) {
        return operand.ok() && type_of(operand) == ExprType::kI32;
      }))
    return false;
  const std::string left = source(operands[0]), right = source(operands[1]);
  const std::string spelling(op.spelling);
  report(Code::kExprType, operands[0].begin, operands[1].end,
         "operands of '" + spelling + "': expected bool, got i32")
      .helps = {"compare them: `" + left + " > 0 " + spelling + " " + right + " > 0`",
                "the bits of two integers are joined by `" +
                    std::string(op.op == ExprOp::kAnd ? "&" : "|") + "`: `" + left +
                    (op.op == ExprOp::kAnd ? " & " : " | ") + right + "`"};
  return true;
}

/// Of `true` and `false` where a number is expected.
std::string Typing::literal_help(const Operand& operand) const {
  const ExprNode& node = builder_[operand.node];
  if (node.op != ExprOp::kLiteral || node.type != ExprType::kBool) return "";
  return std::string("numbers that mean yes and no are 1 and 0: write `") +
         (node.literal != 0 ? "1`" : "0`");
}

bool Typing::check_operands(const OperatorInfo& op, std::span<const Operand> operands) {
  if (are_conditions(op, operands)) return true;
  if (report_integers(op, operands) || report_conditions(op, operands)) return false;
  const bool of_conditions = chooses_conditions(op, operands);
  bool good = true;
  for (std::size_t n = 0; n < operands.size(); ++n) {
    const Operand& operand = operands[n];
    const Expected wanted = expected(op.signature, n);
    const bool is_condition = of_conditions && operand.ok() && type_of(operand) == ExprType::kBool;
    if (!operand.ok() || is_condition) {
      good = false;
    } else if (const ExprType got = type_of(operand); !wanted.accepts(got)) {
      ExprError& error = report(Code::kExprType, operand.begin, operand.end,
                                role(op, n) + ": expected " + std::string(wanted.text()) +
                                    ", got " + std::string(name_of(got)));
      std::string help = literal_help(operand);
      if (help.empty() && got == ExprType::kBool) help = condition_help(op.op, n, source(operand));
      const bool is_power = op.op == ExprOp::kBitXor && got == ExprType::kF32;
      if (is_power)
        error.helps.emplace_back("there are no powers; write `x * x`, or `exp2(y * log2(x))`");
      error.helps.push_back(help.empty() ? conversion_help(wanted, got, source(operand)) : help);
      good = false;
    }
  }
  return good;
}

Operand Typing::apply(const OperatorInfo& op, std::span<const Operand> operands,
                      std::uint32_t begin, std::uint32_t end) {
  if (!check_operands(op, operands)) return {-1, begin, end};
  std::array<int, 3> nodes{-1, -1, -1};
  bool any_f32 = op.signature == Signature::kFloat;
  for (std::size_t n = 0; n < operands.size(); ++n) {
    nodes[n] = operands[n].node;
    any_f32 = any_f32 || builder_[nodes[n]].type == ExprType::kF32;
  }
  for (std::size_t n = 0; any_f32 && n < operands.size(); ++n) nodes[n] = promoted(nodes[n]);
  if (are_conditions(op, operands))
    return located(make_of_conditions(builder_, op.op, nodes), begin, end);
  const bool is_clamp = op.op == ExprOp::kMin && op.arity == 3;
  const int node =
      is_clamp
          ? builder_.make(ExprOp::kMin, builder_.make(ExprOp::kMax, nodes[0], nodes[1]), nodes[2])
          : builder_.make(op.op, nodes[0], nodes[1], nodes[2]);
  return located(node, begin, end);
}

int Typing::result(Operand root) {
  if (!root.ok()) return -1;
  const SiteInfo& site = info(site_);
  const ExprType got = type_of(root), yields = site.yields.value_or(got);
  if (got == yields) return root.node;
  if (yields == ExprType::kF32 && got == ExprType::kI32) return promoted(root.node);
  ExprError& error = report(Code::kExprType, root.begin, root.end,
                            std::string(site.name) + ": expected " + std::string(name_of(yields)) +
                                ", got " + std::string(name_of(got)));
  error.notes.push_back(std::string(site.name) + " yields " + std::string(name_of(yields)) + ": " +
                        std::string(site.doc));
  const Expected wanted{yields == ExprType::kF32, yields != ExprType::kBool,
                        yields == ExprType::kBool};
  error.helps.push_back(conversion_help(wanted, got, source(root)));
  return -1;
}

}  // namespace lacuna
