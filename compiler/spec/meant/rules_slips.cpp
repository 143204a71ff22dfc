// What an operator or an index does here, where those who come from another language mean something
// else by it. Warnings; of specs without errors.
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "compiler/expr/print_expr.hpp"
#include "compiler/spec/read/rule_context.hpp"

namespace lacuna {
namespace {

class SlipRules {
 public:
  SlipRules(const RuleContext& context, const char* path, const JsonNode& node, const Expr& expr)
      : context_(context), path_(path), node_(node), expr_(expr) {}

  void check(const ExprNode& part) {
    switch (part.op) {
      case ExprOp::kBitXor:
        return check_power(part);
      case ExprOp::kParameter:
        return check_ends(part);
      case ExprOp::kSelect:
        return check_closed(part);
      default:
        return;
    }
  }

 private:
  const ExprNode& operand(const ExprNode& part, std::size_t n) const {
    return expr_.nodes[static_cast<std::size_t>(part.children[n])];
  }
  std::string text_of(const ExprNode& part) const {
    Expr alone = expr_;
    alone.nodes.resize(static_cast<std::size_t>(&part - expr_.nodes.data()) + 1);
    return print_expr(alone);
  }
  std::string grouped(const ExprNode& part) const {
    const std::string text = text_of(part);
    return text.find(' ') == std::string::npos ? text : "(" + text + ")";
  }
  static bool is_literal(const ExprNode& part, double value) {
    return part.op == ExprOp::kLiteral && part.literal == value;
  }

  Diagnostic& warn(const ExprNode& part, std::string message) {
    Diagnostic& d = context_.report(Code::kMeantOtherwise, node_,
                                    std::string(path_) + ": " + std::move(message));
    d.severity = Severity::kWarning;
    d.span = span_in_string(context_.source, node_, part.begin, part.end);
    return d;
  }

  /// `2 ^ h`, `(q - k) ^ 2`. Where bits are meant the number can stand on the other side.
  void check_power(const ExprNode& part) {
    const ExprNode &base = operand(part, 0), &exponent = operand(part, 1);
    const bool is_square = base.op == ExprOp::kSubtract && is_literal(exponent, 2);
    const bool is_power = is_literal(base, 2) || is_literal(base, 10);
    if (!is_square && !is_power) return;
    Diagnostic& d = warn(part, "`^` is no power: it has the bits of one of the two");
    if (is_square)
      d.helps.push_back("a square is a product: `" + grouped(base) + " * " + grouped(base) + "`");
    if (is_literal(base, 2)) d.helps.push_back("a power of 2 is `1 << " + grouped(exponent) + "`");
    if (is_literal(base, 10)) d.helps.emplace_back("a power of 10 is `exp(2.302585 * x)`");
    if (is_power)
      d.helps.push_back("if bits are meant: `" + grouped(exponent) + " ^ " + text_of(base) + "`");
  }

  /// An index that is a number in a dimension of a fixed extent, or one before the first token.
  void check_ends(const ExprNode& part) {
    const ParamSymbol& symbol = expr_.parameters[part.symbol];
    for (std::size_t d = 0; d < symbol.shape.size(); ++d) {
      const ExprNode& index = operand(part, d);
      if (index.op != ExprOp::kLiteral) continue;
      const ParamDim& dim = symbol.shape[d];
      const bool is_fixed = dim.axis == ParamAxis::kFixed;
      const bool is_before = index.literal < 0, is_behind = is_fixed && index.literal >= dim.extent;
      if (!is_before && !is_behind) continue;
      const std::string number = text_of(index);
      Diagnostic& warning = warn(part, "index " + number + " of '" + symbol.name + "' is " +
                                           (is_before ? "before the first element, which is read"
                                                      : "behind the last element, which is read"));
      if (is_behind)
        warning.helps.push_back("its " + std::to_string(dim.extent) +
                                " elements have the indices 0 to " +
                                std::to_string(dim.extent - 1));
      else if (is_fixed)
        warning.helps.push_back("the last element has the index " + std::to_string(dim.extent - 1));
      else if (dim.axis == ParamAxis::kNQ || dim.axis == ParamAxis::kNK)
        warning.helps.push_back(std::string("the last token is `") +
                                (dim.axis == ParamAxis::kNQ ? "n_q" : "n_k") + " - 1`");
      return;
    }
  }

  /// `select(c, s, -inf)` leaves a key out of a softmax. Where scores are weights, it does not.
  void check_closed(const ExprNode& part) {
    const bool is_weight = context_.spec.attention.normalise == Weights::kNone;
    if (!is_weight || std::string_view(path_) != "attention.score") return;
    const auto is_lowest = [&](const ExprNode& value) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      return is_literal(value, -kInfinity) ||
             (value.op == ExprOp::kNegate && is_literal(operand(value, 0), kInfinity));
    };
    if (!is_lowest(operand(part, 1)) && !is_lowest(operand(part, 2))) return;
    warn(part, "with attention.normalise \"none\" a score of -inf is a weight of -inf")
        .helps.emplace_back("a key of score `0` is left out");
  }

  const RuleContext& context_;
  const char* path_;
  const JsonNode& node_;
  const Expr& expr_;
};

}  // namespace

void check_slips(const RuleContext& context, const char* path, const JsonNode& node,
                 const Expr& expr, const ExprNode& part) {
  SlipRules(context, path, node, expr).check(part);
}

}  // namespace lacuna
