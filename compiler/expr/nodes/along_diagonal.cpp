#include "compiler/expr/nodes/along_diagonal.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/expr/bounds/ranges.hpp"

namespace lacuna {
namespace {

/// A lane works out a distance for queries and keys that are up to 15 tokens from those it is for.
constexpr double kTokensAway = 16;

/// By how much the value of each node grows from a pair (q, k) to the pair (q + 1, k + 1), which
/// has the same distance. An integer must grow by one number for all pairs, modulo 2^32, because
/// integers wrap. A node that grows by 0 depends on the distance alone.
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

}  // namespace

std::vector<bool> nodes_of_distance(const Expr& formula) {
  const AlongDiagonal along(formula);
  std::vector<bool> is_of_distance;
  for (std::size_t n = 0; n < formula.nodes.size(); ++n)
    is_of_distance.push_back(along.is_of_distance(n));
  return is_of_distance;
}

}  // namespace lacuna
