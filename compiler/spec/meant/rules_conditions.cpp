// What is legal and hardly meant: conditions that always hold, or never, comparisons of numbers
// that are rounded or the wrong way round, indices of keys where queries are counted. Warnings; of
// specs without errors.
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/expr/bounds/decided.hpp"
#include "compiler/expr/bounds/monotonicity.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/print_expr.hpp"
#include "compiler/spec/declared_ranges.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/summary.hpp"

namespace lacuna {
namespace {

/// A condition of the spec, and what follows where it is the same everywhere.
struct Condition {
  const char* path;
  const Expr* expr;
  const char *if_true, *if_false;
};

class ConditionRules {
 public:
  explicit ConditionRules(const RuleContext& context) : context_(context) {}

  /// Those of a spec or a branch, without its predictor.
  void check() {
    const AttentionSpec& attention = context_.spec.attention;
    check_condition({"attention.mask", &attention.mask, "every query sees every key: leave it out",
                     "no query sees a key, and o is 0"});
    for (const auto& [path, expr] : {std::pair("attention.mask", &attention.mask),
                                     std::pair("attention.score", &attention.score),
                                     std::pair("attention.sink", &attention.sink),
                                     std::pair("weight", &context_.spec.branch.weight)})
      check_formula(path, *expr);
    if (context_.spec.branch.count == 0)
      for (const LetSymbol& symbol : context_.spec.let)
        check_formula(("let." + symbol.name).c_str(), symbol.expr);
    if (const auto& gate = context_.spec.gate) {
      if (!check_condition({"gate.skip", &gate->skip,
                            "only the first tile that a row visits is computed",
                            "nothing is gated"}))
        check_direction_of_skip(gate->skip);
      check_condition(
          {"gate.exempt", &gate->exempt, "nothing is gated", "nothing is exempt: leave it out"});
      check_formula("gate.skip", gate->skip);
      check_formula("gate.exempt", gate->exempt);
    }
  }

  void check_step(const PredictorSpec& step) {
    const auto& estimate = step.estimate;
    const bool compares = estimate && estimate->from.empty();
    is_positive_ = compares && estimate->normalise != Normalise::kNone;
    const bool has_sum = compares && estimate->normalise == Normalise::kSoftmax;
    is_share_ = has_sum || (compares && estimate->normalise == Normalise::kRowMax);
    // The p of tiles add up to 1 where a tile has one row of cells, or the mean of its rows. Where
    // it has the largest p of several rows they may add up to more.
    adds_to_one_ = has_sum && (rows_of_tile(estimate->q, step.tile_q) == 1 ||
                               estimate->reduce == Reduce::kSum);
    const bool is_constant =
        step.only_smooths() ||
        check_condition({"predictor.keep", &step.keep, "nothing is left out",
                         step.joins ? "the step adds nothing" : "no tile is computed, and o is 0"});
    if (compares && !is_constant) check_direction_of_keep(step.keep);
    check_formula("predictor.keep", step.keep);
    if (!estimate) return;
    check_condition({"predictor.estimate.reference", &estimate->reference,
                     "all keys are the reference: leave it out",
                     "there is nothing to compare with"});
    check_condition({"predictor.estimate.exclude", &estimate->exclude, "no tile counts, and p is 0",
                     "nothing is excluded: leave it out"});
    check_formula("predictor.estimate.reference", estimate->reference);
    check_formula("predictor.estimate.exclude", estimate->exclude);
    check_formula("predictor.estimate.from", estimate->from);
  }

 private:
  ReadRanges ranges_of(const Expr& expr) const {
    ReadRanges ranges = declared_ranges(expr, context_.spec.params);
    if (is_positive_)
      for (const Variable sum : {Variable::kP, Variable::kPMax, Variable::kMassBefore})
        ranges.variables[static_cast<std::size_t>(sum)].min = 0;
    constexpr double kOne = 1.01;  // and what is rounded
    const auto limit = [&](bool has, Variable variable) {
      if (has) ranges.variables[static_cast<std::size_t>(variable)].max = kOne;
    };
    limit(is_share_, Variable::kP);
    limit(is_share_, Variable::kPMax);
    limit(adds_to_one_, Variable::kMassBefore);
    return ranges;
  }

  Diagnostic& warn(Code code, const JsonNode& node, std::string message) {
    Diagnostic& d = context_.report(code, node, std::move(message));
    d.severity = Severity::kWarning;
    return d;
  }

  /// Whether it is the same everywhere.
  bool check_condition(const Condition& condition) {
    const JsonNode* node = context_.at(condition.path);
    if (node == nullptr || condition.expr->empty()) return false;
    const std::optional<bool> value = decided(*condition.expr, ranges_of(*condition.expr));
    if (!value) return false;
    Diagnostic& d = warn(Code::kConstantCondition, *node,
                         std::string(condition.path) + (*value ? " always holds" : " never holds"));
    d.notes.emplace_back(*value ? condition.if_true : condition.if_false);
    return true;
  }

  void check_direction_of_skip(const Expr& skip) {
    for (const Variable size : {Variable::kTileMax, Variable::kGap})
      check_direction("gate.skip", skip, size, Monotonicity::kRises,
                      "tiles with large scores are left out, and those with small ones computed");
  }

  void check_direction_of_keep(const Expr& keep) {
    constexpr const char *kPath = "predictor.keep",
                         *kNote = "tiles with a small p are kept, and those that matter left out";
    for (const Variable before : {Variable::kRank, Variable::kMassBefore})
      check_direction(kPath, keep, before, Monotonicity::kRises, kNote);
    // `mass_before + p <= tau` leaves out the tile that crosses it.
    if (!uses(keep, Variable::kMassBefore))
      check_direction(kPath, keep, Variable::kP, Monotonicity::kFalls, kNote);
  }

  /// A condition that holds where `variable` is large, where small was meant, or the reverse.
  void check_direction(const char* path, const Expr& expr, Variable variable, Monotonicity wrong,
                       const char* note) {
    const JsonNode* node = context_.at(path);
    if (node == nullptr || monotonicity_of(expr, variable) != wrong) return;
    const bool is_large = wrong == Monotonicity::kRises;
    Diagnostic& d = warn(Code::kReversedCondition, *node,
                         std::string(path) + " holds where " + std::string(info(variable).name) +
                             " is " + (is_large ? "large" : "small"));
    const auto read = std::ranges::find_if(
        expr.nodes, [&](const ExprNode& of) { return is_variable(of, variable); });
    d.span = span_in_string(context_.source, *node, read->begin, read->end);
    d.notes.emplace_back(note);
    d.helps.emplace_back(is_large ? "compare by `<`, if that is not meant"
                                  : "compare by `>`, if that is not meant");
  }

  void check_formula(const char* path, const Expr& expr) {
    const JsonNode* node = context_.at(path);
    if (node == nullptr) return;
    for (const ExprNode& part : expr.nodes) {
      if (is_of_let(expr, part)) continue;  // it is looked at where it is defined
      if (is_comparison(part.op)) check_comparison(path, *node, expr, part);
      if (part.op == ExprOp::kParameter) check_indices(path, *node, expr, part);
      check_slips(context_, path, *node, expr, part);
    }
  }

  /// Whether a name of `let` stands in the place of a node.
  bool is_of_let(const Expr& expr, const ExprNode& node) const {
    const std::string_view written =
        std::string_view(expr.text).substr(node.begin, node.end - node.begin);
    return std::ranges::find(context_.spec.let, written, &LetSymbol::name) !=
           context_.spec.let.end();
  }

  /// A key's number where queries are counted, or the reverse: the same token only where there are
  /// as many of both, as in a spec with an order of tokens.
  void check_indices(const char* path, const JsonNode& node, const Expr& expr,
                     const ExprNode& element) {
    if (context_.spec.permute.order != TokenOrder::kNone) return;
    const ParamSymbol& symbol = expr.parameters[element.symbol];
    for (std::size_t d = 0; d < symbol.shape.size(); ++d) {
      const ParamAxis axis = symbol.shape[d].axis;
      const ExprNode& index = operand(expr, element, d);
      const bool of_key = axis == ParamAxis::kNQ && is_variable(index, Variable::kK);
      const bool of_query = axis == ParamAxis::kNK && is_variable(index, Variable::kQ);
      if (!of_key && !of_query) continue;
      Diagnostic& warning = warn(Code::kExprIndex, node,
                                 std::string(path) + ": " +
                                     (of_key ? "'k' is a key, and this dimension of '"
                                             : "'q' is a query, and this dimension of '") +
                                     symbol.name + (of_key ? "' has queries" : "' has keys"));
      warning.span = span_in_string(context_.source, node, element.begin, element.end);
      warning.notes.emplace_back(
          "they are the same token only where n_q = n_k; beyond its end a dimension has its last "
          "element");
      if (is_swapped(expr, element, symbol)) {
        warning.helps.push_back("indices stand in the order of the shape: `" + symbol.name +
                                "[q, k]`");
        return;
      }
      warning.helps.push_back(std::string("where queries are the last tokens write `") +
                              (of_key ? "k + n_q - n_k" : "q + n_k - n_q") +
                              "`; or declare a parameter with " + (of_key ? "n_k" : "n_q"));
      return;
    }
  }

  /// `m[k, q]` of a shape that ends with n_q, n_k.
  static bool is_swapped(const Expr& expr, const ExprNode& element, const ParamSymbol& symbol) {
    const std::size_t rank = symbol.shape.size();
    return rank >= 2 && symbol.shape[rank - 2].axis == ParamAxis::kNQ &&
           symbol.shape[rank - 1].axis == ParamAxis::kNK &&
           is_variable(operand(expr, element, rank - 2), Variable::kK) &&
           is_variable(operand(expr, element, rank - 1), Variable::kQ);
  }

  static const ExprNode& operand(const Expr& expr, const ExprNode& node, std::size_t n) {
    return expr.nodes[static_cast<std::size_t>(node.children[n])];
  }
  /// Not a piece of the source: equal parts of a formula are one node, at the place of the first.
  static std::string text_of(const Expr& expr, const ExprNode& node) {
    Expr part = expr;
    part.nodes.resize(static_cast<std::size_t>(&node - expr.nodes.data()) + 1);
    return print_expr(part);
  }

  static bool is_integer(const ExprNode& node) {
    return node.op == ExprOp::kToF32 ||
           (node.op == ExprOp::kLiteral && std::floor(node.literal) == node.literal);
  }

  /// `/` of two integers, where `//` may have been meant.
  static bool is_quotient(const Expr& expr, const ExprNode& node) {
    return node.op == ExprOp::kDivide && is_integer(operand(expr, node, 0)) &&
           is_integer(operand(expr, node, 1));
  }

  template <class Asks>
  static bool any_within(const Expr& expr, const ExprNode& node, const Asks& asks) {
    if (asks(node)) return true;
    return std::ranges::any_of(node.children, [&](std::int32_t child) {
      return child >= 0 && any_within(expr, expr.nodes[static_cast<std::size_t>(child)], asks);
    });
  }

  /// A number that no operator has rounded: equality means what it says.
  static bool is_whole(const Expr& expr, const ExprNode& node) {
    switch (node.op) {
      case ExprOp::kToF32:
      case ExprOp::kFloor:
      case ExprOp::kCeil:
        return true;
      case ExprOp::kLiteral:
        return std::floor(node.literal) == node.literal;
      case ExprOp::kNegate:
      case ExprOp::kAbs:
        return is_whole(expr, operand(expr, node, 0));
      case ExprOp::kAdd:
      case ExprOp::kSubtract:
      case ExprOp::kMultiply:
      case ExprOp::kMin:
      case ExprOp::kMax:
        return is_whole(expr, operand(expr, node, 0)) && is_whole(expr, operand(expr, node, 1));
      case ExprOp::kSelect:
        return is_whole(expr, operand(expr, node, 1)) && is_whole(expr, operand(expr, node, 2));
      default:
        return false;
    }
  }

  /// The comparison with `//` in the place of each `/`.
  std::string with_floor_division(const Expr& expr, const ExprNode& comparison) const {
    const std::string_view source =
        std::string_view(expr.text).substr(comparison.begin, comparison.end - comparison.begin);
    std::string text = "`";
    for (std::size_t n = 0; n < source.size(); ++n) {
      const bool is_floored = source.substr(n).starts_with("//");
      text += is_floored ? "//" : source[n] == '/' ? "//" : std::string(1, source[n]);
      if (is_floored) ++n;
    }
    const bool divides_by_name = any_within(expr, comparison, [&](const ExprNode& of) {
      return of.op == ExprOp::kDivide && is_of_let(expr, of);
    });
    return text + (divides_by_name ? "`, and `//` in the definition" : "`");
  }

  /// `rank < 0.5`: a share was meant, and a number of tiles is compared.
  bool check_count(const char* path, const JsonNode& node, const Expr& expr,
                   const ExprNode& comparison) {
    const ExprNode &count = operand(expr, comparison, 0), &share = operand(expr, comparison, 1);
    const bool is_rank =
        count.op == ExprOp::kToF32 && is_variable(operand(expr, count, 0), Variable::kRank);
    if (!is_rank || share.op != ExprOp::kLiteral || share.literal <= 0 || share.literal >= 1)
      return false;
    Diagnostic& d = warn(Code::kRoundedComparison, node,
                         std::string(path) + ": rank is a number of tiles, and no share of them");
    d.span = span_in_string(context_.source, node, comparison.begin, comparison.end);
    d.helps.push_back("of the tiles that a row sees: `rank " +
                      std::string(info(comparison.op).spelling) + " " + text_of(expr, share) +
                      " * visible`");
    return true;
  }

  void check_comparison(const char* path, const JsonNode& node, const Expr& expr,
                        const ExprNode& comparison) {
    const ExprNode &a = operand(expr, comparison, 0), &b = operand(expr, comparison, 1);
    if (a.type != ExprType::kF32) return;
    if (check_count(path, node, expr, comparison)) return;
    const bool is_equality = comparison.op == ExprOp::kEqual || comparison.op == ExprOp::kNotEqual;
    const bool of_one_divisor =
        is_quotient(expr, a) && is_quotient(expr, b) &&
        text_of(expr, operand(expr, a, 1)) == text_of(expr, operand(expr, b, 1));
    const auto divides = [&](const ExprNode& of) { return is_quotient(expr, of); };
    const auto report = [&](const std::string& message, std::string note, std::string help) {
      Diagnostic& d = warn(Code::kRoundedComparison, node, std::string(path) + ": " + message);
      d.span = span_in_string(context_.source, node, comparison.begin, comparison.end);
      d.notes.push_back(std::move(note));
      d.helps.push_back(std::move(help));
    };
    if (of_one_divisor)
      return report("`/` is not rounded, so this compares " + text_of(expr, operand(expr, a, 0)) +
                        " with " + text_of(expr, operand(expr, b, 0)),
                    "both are divided by the same number",
                    "to compare blocks: " + with_floor_division(expr, comparison));
    if (!is_equality || (is_whole(expr, a) && is_whole(expr, b))) return;
    if (any_within(expr, comparison, divides) &&
        !any_within(expr, comparison, [](const ExprNode& of) {
          return of.op == ExprOp::kFloor || of.op == ExprOp::kCeil;
        }))
      return report("`/` is not rounded, so the sides are seldom equal",
                    "`/` of integers is f32, `//` rounds down and stays i32",
                    "to count whole parts: " + with_floor_division(expr, comparison));
    check_equality(expr, comparison, report);
  }

  /// Of f32 that are none of integers.
  template <class Report>
  static void check_equality(const Expr& expr, const ExprNode& comparison, const Report& report) {
    const ExprNode &a = operand(expr, comparison, 0), &b = operand(expr, comparison, 1);
    const bool reads_tokens = any_within(expr, comparison, [](const ExprNode& of) {
      return is_variable(of, Variable::kQ) || is_variable(of, Variable::kK);
    });
    const auto is_given = [](const ExprNode& of) { return of.op == ExprOp::kParameter; };
    const auto is_literal = [](const ExprNode& of) { return of.op == ExprOp::kLiteral; };
    const bool is_marker = (is_given(a) && is_literal(b)) || (is_literal(a) && is_given(b));
    if (!reads_tokens || is_marker) return;
    const std::string right = text_of(expr, b);
    const bool is_sum = right.find(' ') != std::string::npos;
    const std::string difference =
        "`abs(" + text_of(expr, a) + " - " + (is_sum ? "(" + right + ")" : right) + ")";
    std::string help = comparison.op == ExprOp::kEqual
                           ? "within a tolerance: " + difference + " < 0.001`"
                           : "beyond a tolerance: " + difference + " >= 0.001`";
    for (const ExprNode* side : {&a, &b})
      if (is_given(*side)) {
        help = "\"type\": \"i32\" in params." + expr.parameters[side->symbol].name +
               " if it has whole numbers; " + help;
        break;
      }
    report("two f32 are compared for equality", "they are equal only where all of their bits are",
           help);
  }

  const RuleContext& context_;
  /// Of p: not below 0, at most 1; the p of a row add up to 1.
  bool is_positive_ = false, is_share_ = false, adds_to_one_ = false;
};

}  // namespace

void check_conditions(const RuleContext& context) {
  ConditionRules(context).check();
  const std::vector<const PredictorSpec*> steps = context.spec.steps();
  const JsonNode* predictor = context.root.find("predictor");
  if (predictor == nullptr) return;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    RuleContext of_step = context;
    if (predictor->is(JsonNode::Kind::kArray)) of_step.step = &predictor->children[n];
    ConditionRules(of_step).check_step(*steps[n]);
  }
}

}  // namespace lacuna
