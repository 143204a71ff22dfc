#include "compiler/expr/parts/shared_parts.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/expr/bounds/ranges.hpp"
#include "compiler/expr/parts/constant_parts.hpp"
#include "compiler/expr/parts/score_cost.hpp"
#include "compiler/expr/parts/taken_part.hpp"

namespace lacuna {
namespace {

/// What handing a value on costs, in the units of work_of: less is worked out for each score.
constexpr int kLeastWork = 3;
/// A lane works out a distance for queries and keys that are up to 15 tokens from those it is for.
constexpr double kTokensAway = 16;

/// What nodes gain from a pair (q, k) to the pair (q + 1, k + 1), whose distance is the same: of an
/// integer one number for all pairs, modulo 2^32, because integers wrap. A node that gains 0
/// depends on the distance alone.
class AlongDiagonal {
 public:
  explicit AlongDiagonal(const Expr& formula) : formula_(formula) {
    for (const ExprNode& node : formula.nodes) add(node);
  }

  bool is_of_distance(std::size_t node) const { return facts_[node].gain == 0U; }

 private:
  struct Facts {
    std::optional<std::uint32_t> gain;  ///< nullopt: not always the same
    ValueRange range;
  };

  void add(const ExprNode& node) {
    std::array<ValueRange, kMaxParamRank> ranges;
    std::size_t count = 0;
    ExprType operand = node.type;
    for (; count < ranges.size() && node.children[count] >= 0; ++count) {
      ranges[count] = below(node, count).range;
      if (count == 0 || node.op == ExprOp::kSelect)
        operand = formula_.nodes[static_cast<std::size_t>(node.children[count])].type;
    }
    const ValueRange exact = node_range(node, operand, {ranges.data(), count});
    facts_.push_back({gain_of(node, count), wrapped_range(node.type, exact)});
  }

  const Facts& below(const ExprNode& node, std::size_t child) const {
    return facts_[static_cast<std::size_t>(node.children[child])];
  }

  std::optional<std::uint32_t> gain_of(const ExprNode& node, std::size_t children) const {
    if (is_variable(node, Variable::kQ) || is_variable(node, Variable::kK)) return 1;
    if (is_variable(node, Variable::kS)) return std::nullopt;
    bool all_stay = true;
    for (std::size_t n = 0; n < children; ++n) {
      if (!below(node, n).gain) return std::nullopt;
      all_stay &= below(node, n).gain == 0U;
    }
    if (all_stay) return 0;
    if (is_comparison(node.op)) return compares_alike(node) ? std::optional(0U) : std::nullopt;
    if (node.type != ExprType::kI32) return std::nullopt;
    return gain_of_integer(node);
  }

  /// Of operands that do not all stay the same.
  std::optional<std::uint32_t> gain_of_integer(const ExprNode& node) const {
    const std::uint32_t a = *below(node, 0).gain;
    switch (node.op) {
      case ExprOp::kNegate:
        return 0U - a;
      case ExprOp::kAdd:
        return a + *below(node, 1).gain;
      case ExprOp::kSubtract:
        return a - *below(node, 1).gain;
      case ExprOp::kMultiply:
        return gain_of_product(node);
      case ExprOp::kMin:
      case ExprOp::kMax:
        return compares_alike(node) ? std::optional(a) : std::nullopt;
      case ExprOp::kSelect:
        if (a != 0 || *below(node, 1).gain != *below(node, 2).gain) return std::nullopt;
        return below(node, 1).gain;
      default:
        return std::nullopt;
    }
  }

  std::optional<std::uint32_t> gain_of_product(const ExprNode& node) const {
    for (const std::size_t side : {0, 1}) {
      const ExprNode& factor = formula_.nodes[static_cast<std::size_t>(node.children[side])];
      if (factor.op == ExprOp::kLiteral)
        return *below(node, 1 - side).gain *
               static_cast<std::uint32_t>(static_cast<std::int32_t>(factor.literal));
    }
    return std::nullopt;
  }

  /// Do two integers compare alike everywhere? Those that gain the same do, but for their order
  /// where one may wrap.
  bool compares_alike(const ExprNode& node) const {
    const Facts &a = below(node, 0), &b = below(node, 1);
    if (a.gain != b.gain) return false;
    if (node.op == ExprOp::kEqual || node.op == ExprOp::kNotEqual) return true;
    const double gain = std::fabs(static_cast<double>(static_cast<std::int32_t>(*a.gain)));
    for (const ValueRange& range : {a.range, b.range}) {
      if (!fits_i32({range.min - gain * kTokensAway, range.max + gain * kTokensAway})) return false;
    }
    return true;
  }

  const Expr& formula_;
  std::vector<Facts> facts_;
};

/// Of each node: does it depend on the key alone? It reads k, but not q, and not s, which stands
/// for the part that was taken before.
std::vector<bool> nodes_of_key(const Expr& formula) {
  constexpr Variable kKey[] = {Variable::kK}, kOthers[] = {Variable::kQ, Variable::kS};
  std::vector<bool> is_of_key = changing_nodes(formula, kKey);
  const std::vector<bool> reads_others = changing_nodes(formula, kOthers);
  for (std::size_t n = 0; n < is_of_key.size(); ++n)
    is_of_key[n] = is_of_key[n] && !reads_others[n];
  return is_of_key;
}
std::vector<bool> nodes_of_distance(const Expr& formula) {
  const AlongDiagonal along(formula);
  std::vector<bool> is_of_distance;
  for (std::size_t n = 0; n < formula.nodes.size(); ++n)
    is_of_distance.push_back(along.is_of_distance(n));
  return is_of_distance;
}

/// The f32 nodes that are shared and not part of another such node. A product or a negative is
/// taken only if it is the whole formula: inside of a sum the product and the sum may be rounded
/// once (FMA), and shall be so still.
std::vector<std::size_t> whole_parts(const Expr& formula, const std::vector<bool>& is_shared) {
  std::vector<std::size_t> parts;
  std::vector<bool> is_outside(formula.nodes.size(), false);
  is_outside.back() = true;
  for (std::size_t n = formula.nodes.size(); n-- > 0;) {
    if (!is_outside[n]) continue;
    const ExprNode& node = formula.nodes[n];
    const bool is_product = node.op == ExprOp::kMultiply || node.op == ExprOp::kNegate;
    const bool may_be_part = n + 1 == formula.nodes.size() || !is_product;
    if (node.type == ExprType::kF32 && may_be_part && is_shared[n]) {
      parts.push_back(n);
      continue;
    }
    for (const std::int32_t child : node.children)
      if (child >= 0) is_outside[static_cast<std::size_t>(child)] = true;
  }
  return parts;
}

/// Operations for each score, as an integer one takes: loads, special functions more.
int work_of(const ScoreCost& cost) {
  return cost.float_operations + cost.integer_operations + cost.decisions +
         4 * (cost.loads + cost.special_functions);
}

/// Takes the part that is most work out of `rest`, where `value` stands for it; empty: none is
/// enough.
Expr take_part(Expr& rest, const std::vector<bool>& is_shared, Variable value) {
  std::size_t best = 0;
  int most_work = kLeastWork - 1;
  Expr taken;
  for (const std::size_t node : whole_parts(rest, is_shared)) {
    Expr part = part_at(rest, node);
    const int work = work_of(cost_along_row(part));
    if (work <= most_work) continue;
    most_work = work, best = node;
    taken = std::move(part);
  }
  if (!taken.empty()) rest = with_variable_at(rest, best, value);
  return taken;
}

}  // namespace

std::optional<SharedParts> shared_parts(const Expr& rest) {
  if (rest.empty()) return std::nullopt;
  SharedParts parts{.of_distance = {}, .of_key = {}, .rest = rest};
  parts.of_distance = take_part(parts.rest, nodes_of_distance(parts.rest), Variable::kS);
  parts.of_key = take_part(parts.rest, nodes_of_key(parts.rest), Variable::kP);
  if (parts.of_distance.empty() && parts.of_key.empty()) return std::nullopt;
  return parts;
}

}  // namespace lacuna
