#include "compiler/expr/bounds/along_tokens.hpp"

#include <array>

namespace lacuna {

const AlongTokens::Facts& AlongTokens::facts(int id) {
  for (auto n = static_cast<int>(facts_.size()); n < static_cast<int>(builder_.size()); ++n)
    facts_.push_back(facts_of(builder_[n]));
  return facts_[static_cast<std::size_t>(id)];
}

AlongTokens::Facts AlongTokens::facts_of(const ExprNode& node) const {
  Facts facts{is_variable(node, Variable::kS), is_variable(node, token_)};
  std::array<ValueRange, kMaxParamRank> ranges;
  std::size_t count = 0;
  ExprType operand = node.type;
  for (; count < ranges.size() && node.children[count] >= 0; ++count) {
    const std::int32_t child = node.children[count];
    const Facts& below = facts_[static_cast<std::size_t>(child)];
    facts.reads_s |= below.reads_s, facts.reads_token |= below.reads_token;
    ranges[count] = below.range;
    if (count == 0 || node.op == ExprOp::kSelect) operand = builder_[child].type;
  }
  const bool is_declared = node.op == ExprOp::kParameter && !parameters_.empty();
  const ValueRange exact = is_declared ? parameter_range(parameters_[node.symbol])
                                       : node_range(node, operand, {ranges.data(), count});
  facts.may_wrap = node.type == ExprType::kI32 && !fits_i32(exact);
  facts.range = wrapped_range(node.type, exact);
  return facts;
}

bool AlongTokens::may_wrap(ExprOp op, int a, int b) {
  const ValueRange ranges[] = {facts(a).range, facts(b).range};
  const ExprNode node = {.op = op, .type = ExprType::kI32, .children = {a, b, -1}};
  return !fits_i32(node_range(node, ExprType::kI32, ranges));
}

std::optional<int> AlongTokens::slope_of(int id) {
  const ExprNode node = builder_[id];
  if (!reads_token(id)) return builder_.literal(node.type, 0);
  if (is_variable(node, token_)) return builder_.integer(1);
  if (facts(id).may_wrap) return std::nullopt;
  switch (node.op) {
    case ExprOp::kNegate:
    case ExprOp::kToF32: {
      const auto inner = slope_of(node.children[0]);
      if (!inner) return std::nullopt;
      return builder_.make(node.op, *inner);
    }
    case ExprOp::kAdd:
    case ExprOp::kSubtract: {
      const auto left = slope_of(node.children[0]), right = slope_of(node.children[1]);
      if (!left || !right) return std::nullopt;
      return builder_.make(node.op, *left, *right);
    }
    case ExprOp::kMultiply:
      return slope_of_product(node);
    default:
      return std::nullopt;
  }
}

std::optional<int> AlongTokens::slope_of_product(const ExprNode& node) {
  const bool is_left = reads_token(node.children[0]);
  if (is_left && reads_token(node.children[1])) return std::nullopt;
  const auto inner = slope_of(node.children[is_left ? 0 : 1]);
  if (!inner) return std::nullopt;
  return builder_.make(ExprOp::kMultiply, *inner, node.children[is_left ? 1 : 0]);
}

}  // namespace lacuna
