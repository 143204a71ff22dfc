#include "compiler/expr/bounds/decided.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "compiler/expr/expr_tables.hpp"

namespace lacuna {
namespace {

/// More cases than this are not looked at: the condition is then taken to depend on something.
constexpr std::size_t kMostCases = 4096;

/// One lies below the other.
struct Order {
  Variable less, greater;
  int least_gap;
};
constexpr Order kOrders[] = {
    {Variable::kQ, Variable::kNQ, 1},  {Variable::kQ0, Variable::kNQ, 1},
    {Variable::kQ1, Variable::kNQ, 1}, {Variable::kQ0, Variable::kQ1, 0},
    {Variable::kK, Variable::kNK, 1},  {Variable::kK0, Variable::kNK, 1},
    {Variable::kK1, Variable::kNK, 1}, {Variable::kK0, Variable::kK1, 0},
    {Variable::kI, Variable::kNI, 1},  {Variable::kJ, Variable::kNJ, 1},
    {Variable::kH, Variable::kNH, 1},  {Variable::kRank, Variable::kVisible, 1},
};

std::string key_of(Variable variable) { return std::string(info(variable).name); }

/// Terms with their factors, and a number.
struct Sum {
  std::map<std::string, double> factors;
  double number = 0;

  void add(const Sum& other, double factor) {
    for (const auto& [term, count] : other.factors) {
      factors[term] += factor * count;
      if (factors[term] == 0) factors.erase(term);
    }
    number += factor * other.number;
  }
};

/// What a group of comparisons asks about: a sum, or which of two numbers is larger (their
/// difference, as far as its sign goes).
struct Subject {
  ValueRange range;
  bool is_whole = false, maybe_nan = false;
  std::set<double> thresholds;
};

/// A comparison: `subject op threshold`.
struct Question {
  ExprOp op = ExprOp::kEqual;
  std::string subject;
  double threshold = 0;
};

bool answer(ExprOp op, double a, double b) {
  switch (op) {
    case ExprOp::kLess:
      return a < b;
    case ExprOp::kLessEqual:
      return a <= b;
    case ExprOp::kGreater:
      return a > b;
    case ExprOp::kGreaterEqual:
      return a >= b;
    case ExprOp::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

class Decision {
 public:
  Decision(const Expr& expr, const ReadRanges& ranges) : expr_(expr) {
    for (const ExprNode& node : expr.nodes) {
      keys_.push_back(key(node));
      ranges_.push_back(range(node, ranges));
      maybe_nan_.push_back(maybe_nan(node));
    }
    for (std::size_t n = 0; n < expr.nodes.size(); ++n)
      if (is_comparison(expr.nodes[n].op) && operand(expr.nodes[n], 0).type != ExprType::kBool)
        questions_[n] = ask(expr.nodes[n]);
  }

  std::optional<bool> run() {
    std::vector<std::pair<std::string, std::vector<double>>> cases;
    std::size_t count = 1;
    for (const auto& [name, subject] : subjects_) {
      cases.emplace_back(name, values_of(subject));
      count *= cases.back().second.size();
      if (count > kMostCases) return std::nullopt;
    }
    std::optional<bool> all;
    for (std::size_t n = 0; n < count; ++n) {
      std::size_t rest = n;
      for (const auto& [name, values] : cases) {
        values_[name] = values[rest % values.size()];
        rest /= values.size();
      }
      const bool holds = is_true(expr_.nodes.size() - 1);
      if (all && *all != holds) return std::nullopt;
      all = holds;
    }
    return all;
  }

 private:
  static std::size_t index(std::int32_t child) { return static_cast<std::size_t>(child); }
  const ExprNode& operand(const ExprNode& node, std::size_t n) const {
    return expr_.nodes[index(node.children[n])];
  }

  /// Equal for nodes that mean the same.
  std::string key(const ExprNode& node) const {
    if (node.op == ExprOp::kToF32) return keys_[index(node.children[0])];
    if (node.op == ExprOp::kVariable) return key_of(static_cast<Variable>(node.symbol));
    std::string text = std::to_string(static_cast<int>(node.op)) + ":";
    if (node.op == ExprOp::kParameter) text += std::to_string(node.symbol);
    if (node.op == ExprOp::kLiteral) text += std::to_string(node.literal);
    for (const std::int32_t child : node.children)
      if (child >= 0) text += "(" + keys_[index(child)] + ")";
    return text;
  }

  ValueRange range(const ExprNode& node, const ReadRanges& known) const {
    if (node.op == ExprOp::kVariable) return known.variables[node.symbol];
    if (node.op == ExprOp::kParameter) return known.parameters[node.symbol];
    std::vector<ValueRange> operands;
    for (const std::int32_t child : node.children)
      if (child >= 0) operands.push_back(ranges_[index(child)]);
    const std::size_t of = node.op == ExprOp::kSelect ? 1 : 0;
    const ExprType type = operands.empty() ? node.type : operand(node, of).type;
    const ValueRange exact = wrapped_range(node.type, node_range(node, type, operands));
    const bool is_exact =
        node.op == ExprOp::kLiteral || node.type != ExprType::kF32 ||
        (node.op == ExprOp::kToF32 && exact.max <= kMaxIndex && exact.min >= -kMaxIndex);
    return is_exact ? exact : rounded(exact);
  }

  /// Where f32 may lie whose exact values are in the range. None crosses 0.
  static ValueRange rounded(const ValueRange& exact) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto next = [](double end, float toward) {
      return end == 0 ? 0 : static_cast<double>(std::nextafter(static_cast<float>(end), toward));
    };
    return {next(exact.min, -kInfinity), next(exact.max, kInfinity)};
  }

  /// Numbers that a caller passes, and those of a launch, are none.
  bool maybe_nan(const ExprNode& node) const {
    switch (node.op) {
      case ExprOp::kLiteral:
      case ExprOp::kVariable:
      case ExprOp::kParameter:
      case ExprOp::kToF32:
        return false;
      case ExprOp::kNegate:
      case ExprOp::kAbs:
      case ExprOp::kFloor:
      case ExprOp::kCeil:
      case ExprOp::kMin:
      case ExprOp::kMax:
      case ExprOp::kSelect:
        return std::ranges::any_of(node.children, [&](std::int32_t child) {
          return child >= 0 && maybe_nan_[index(child)];
        });
      default:
        return node.type == ExprType::kF32;
    }
  }

  /// A whole number as a sum; what is no sum is a term of its own.
  Sum sum_of(std::int32_t id) const {
    const ExprNode& node = expr_.nodes[index(id)];
    Sum sum;
    const bool is_exact = fits_i32(ranges_[index(id)]) && !wraps(node);
    if (node.op == ExprOp::kLiteral) {
      sum.number = node.literal;
    } else if (is_exact && (node.op == ExprOp::kAdd || node.op == ExprOp::kSubtract)) {
      sum.add(sum_of(node.children[0]), 1);
      sum.add(sum_of(node.children[1]), node.op == ExprOp::kAdd ? 1 : -1);
    } else if (is_exact && node.op == ExprOp::kNegate) {
      sum.add(sum_of(node.children[0]), -1);
    } else if (is_exact && node.op == ExprOp::kMultiply &&
               (operand(node, 0).op == ExprOp::kLiteral ||
                operand(node, 1).op == ExprOp::kLiteral)) {
      const std::size_t literal = operand(node, 0).op == ExprOp::kLiteral ? 0 : 1;
      sum.add(sum_of(node.children[1 - literal]), operand(node, literal).literal);
    } else {
      sum.factors[keys_[index(id)]] = 1;
    }
    return sum;
  }

  /// Could the operator leave 32 bits? Its own range says no more once it may have.
  bool wraps(const ExprNode& node) const {
    if (node.op != ExprOp::kAdd && node.op != ExprOp::kSubtract && node.op != ExprOp::kMultiply &&
        node.op != ExprOp::kNegate)
      return false;
    std::vector<ValueRange> operands;
    for (const std::int32_t child : node.children)
      if (child >= 0) operands.push_back(ranges_[index(child)]);
    return !fits_i32(operator_range(node.op, ExprType::kI32, operands));
  }

  ValueRange range_of_term(const std::string& term) const {
    const auto found = std::ranges::find(keys_, term);
    return ranges_[static_cast<std::size_t>(found - keys_.begin())];
  }

  /// Two terms of which one is known to be the larger count together.
  ValueRange range_of_sum(std::map<std::string, double> factors) const {
    ValueRange range;
    for (const Order& order : kOrders) {
      const auto less = factors.find(key_of(order.less));
      const auto greater = factors.find(key_of(order.greater));
      if (less == factors.end() || greater == factors.end()) continue;
      if (less->second * greater->second > 0) continue;
      const double pairs = std::min(std::fabs(less->second), std::fabs(greater->second));
      const double near = pairs * order.least_gap, far = pairs * kMaxIndex;
      const bool is_less = less->second > 0;
      range = {range.min + (is_less ? -far : near), range.max + (is_less ? -near : far)};
      less->second -= is_less ? pairs : -pairs;
      greater->second += is_less ? pairs : -pairs;
    }
    for (const auto& [term, factor] : factors) {
      if (factor == 0) continue;
      const ValueRange of = range_of_term(term);
      range.min += std::min(factor * of.min, factor * of.max);
      range.max += std::max(factor * of.min, factor * of.max);
    }
    return range;
  }

  Question ask(const ExprNode& node) {
    return operand(node, 0).type == ExprType::kI32 ? ask_of_sum(node) : ask_of_pair(node);
  }

  Question ask_of_sum(const ExprNode& node) {
    Sum sum = sum_of(node.children[0]);
    sum.add(sum_of(node.children[1]), -1);
    Question question{node.op, "sum", -sum.number};
    if (!sum.factors.empty() && sum.factors.begin()->second < 0) {
      for (auto& [term, factor] : sum.factors) factor = -factor;
      question = {mirrored(node.op), "sum", sum.number};
    }
    for (const auto& [term, factor] : sum.factors)
      question.subject += " + " + std::to_string(factor) + " * " + term;
    Subject& subject = subjects_[question.subject];
    subject.is_whole = true;
    subject.range = range_of_sum(sum.factors);
    subject.thresholds.insert(question.threshold);
    return question;
  }

  /// One operand against a number asks about that operand; two operands ask which is larger.
  Question ask_of_pair(const ExprNode& node) {
    std::size_t a = index(node.children[0]), b = index(node.children[1]);
    ExprOp op = node.op;
    const auto is_literal = [&](std::size_t n) { return ranges_[n].min == ranges_[n].max; };
    if ((is_literal(a) && !is_literal(b)) ||
        (is_literal(a) == is_literal(b) && keys_[b] < keys_[a])) {
      std::swap(a, b);
      op = mirrored(op);
    }
    Question question{op, keys_[a], ranges_[b].min};
    ValueRange range = ranges_[a];
    if (!is_literal(b)) {
      question = {op, "pair " + keys_[a] + " " + keys_[b], 0};
      range = {ranges_[a].min - ranges_[b].max, ranges_[a].max - ranges_[b].min};
      if (keys_[a] == keys_[b]) range = {0, 0};
      if (std::isnan(range.min) || std::isnan(range.max)) range = full_range(ExprType::kF32);
    }
    Subject& subject = subjects_[question.subject];
    subject.range = range;
    subject.maybe_nan = maybe_nan_[a] || maybe_nan_[b];
    subject.thresholds.insert(question.threshold);
    return question;
  }

  /// One number for each way in which the subject can lie to its thresholds.
  static std::vector<double> values_of(const Subject& subject) {
    std::set<double> values = {subject.range.min, subject.range.max};
    double last = -std::numeric_limits<double>::infinity();
    for (const double threshold : subject.thresholds) {
      values.insert(threshold);
      if (subject.is_whole)
        values.insert({threshold - 1, threshold + 1});
      else if (std::isfinite(last))
        values.insert(last + (threshold - last) / 2);
      last = threshold;
    }
    std::vector<double> legal;
    for (const double value : values)
      if (value >= subject.range.min && value <= subject.range.max) legal.push_back(value);
    if (subject.maybe_nan) legal.push_back(std::numeric_limits<double>::quiet_NaN());
    return legal;
  }

  bool is_true(std::size_t id) const {
    const ExprNode& node = expr_.nodes[id];
    const auto child = [&](std::size_t n) { return is_true(index(node.children[n])); };
    if (const auto question = questions_.find(id); question != questions_.end()) {
      const Question& asked = question->second;
      return answer(asked.op, values_.at(asked.subject), asked.threshold);
    }
    switch (node.op) {
      case ExprOp::kNot:
        return !child(0);
      case ExprOp::kAnd:
        return child(0) && child(1);
      case ExprOp::kOr:
        return child(0) || child(1);
      case ExprOp::kSelect:
        return child(0) ? child(1) : child(2);
      case ExprOp::kEqual:
        return child(0) == child(1);
      case ExprOp::kNotEqual:
        return child(0) != child(1);
      default:
        return node.literal != 0;
    }
  }

  const Expr& expr_;
  std::vector<std::string> keys_;
  std::vector<ValueRange> ranges_;
  std::vector<bool> maybe_nan_;
  std::map<std::string, Subject> subjects_;
  std::map<std::size_t, Question> questions_;
  std::map<std::string, double> values_;
};

}  // namespace

ReadRanges::ReadRanges(const Expr& expr) {
  for (int n = 0; n < kVariableCount; ++n)
    variables[static_cast<std::size_t>(n)] = variable_range(static_cast<Variable>(n));
  for (const ParamSymbol& symbol : expr.parameters)
    parameters.push_back(parameter_range(symbol.type));
}

std::optional<bool> decided(const Expr& condition, const ReadRanges& ranges) {
  if (condition.empty()) return std::nullopt;
  return Decision(condition, ranges).run();
}

}  // namespace lacuna
