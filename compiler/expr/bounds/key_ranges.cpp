#include "compiler/expr/bounds/key_ranges.hpp"

#include <optional>

#include "compiler/expr/bounds/along_tokens.hpp"
#include "compiler/expr/bounds/open_comparisons.hpp"
#include "compiler/expr/fold.hpp"

namespace lacuna {
namespace {

constexpr std::int32_t kBehindAllKeys = 1 << 30;

/// Ids of nodes; -1: no bound.
struct Bounds {
  int first = -1, last = -1;
};
using Ranges = std::vector<Bounds>;

class RangeFinder {
 public:
  explicit RangeFinder(const Expr& mask) : parameters_(mask.parameters) {
    for (const ExprNode& node : mask.nodes) {
      moved_.push_back(builder_.copy(node, moved_children(node, moved_)));
      at_first_key_.push_back(is_variable(node, Variable::kK)
                                  ? builder_.integer(0)
                                  : builder_.copy(node, moved_children(node, at_first_key_)));
    }
  }

  std::vector<KeyRange> find(const Expr& mask) {
    std::vector<KeyRange> found;
    const auto ranges = ranges_of(mask, static_cast<std::int32_t>(mask.nodes.size()) - 1);
    if (!ranges) return found;
    for (const Bounds& bounds : *ranges)
      found.push_back({extract(bounds.first), extract(bounds.last)});
    return found;
  }

 private:
  std::optional<Ranges> ranges_of(const Expr& mask, std::int32_t id) {
    const ExprNode& node = mask.nodes[static_cast<std::size_t>(id)];
    if (!along_.reads_token(moved(id))) return of_condition(moved(id));
    if (node.op == ExprOp::kAnd || node.op == ExprOp::kOr) {
      const auto left = ranges_of(mask, node.children[0]);
      const auto right = ranges_of(mask, node.children[1]);
      if (!left || !right) return std::nullopt;
      return limited(node.op == ExprOp::kAnd ? intersected(*left, *right) : united(*left, *right));
    }
    return of_comparison(mask, node);
  }

  /// What is the same for all keys of a row: all of them, or none.
  Ranges of_condition(int id) {
    const ExprNode& node = builder_[id];
    if (node.op == ExprOp::kLiteral && node.literal != 0) return {Bounds{}};
    return {
        {builder_.make(ExprOp::kSelect, id, builder_.integer(0), builder_.integer(kBehindAllKeys)),
         -1}};
  }

  /// left - right = slope * k + at_first, with a slope of 1 or -1.
  std::optional<Ranges> of_comparison(const Expr& mask, const ExprNode& node) {
    const ExprOp op = node.op;
    if (op < ExprOp::kLess || op > ExprOp::kEqual) return std::nullopt;
    const std::int32_t left = node.children[0], right = node.children[1];
    if (mask.nodes[static_cast<std::size_t>(left)].type != ExprType::kI32) return std::nullopt;
    const auto left_slope = along_.slope_of(moved(left)),
               right_slope = along_.slope_of(moved(right));
    if (!left_slope || !right_slope) return std::nullopt;
    const ExprNode slope = builder_[builder_.make(ExprOp::kSubtract, *left_slope, *right_slope)];
    if (slope.op != ExprOp::kLiteral || (slope.literal != 1 && slope.literal != -1))
      return std::nullopt;
    const bool rises = slope.literal > 0;
    // k <= bound, or k >= bound, where both sides are equal.
    const int bound = rises ? difference(right, left) : difference(left, right);
    if (op == ExprOp::kEqual) return Ranges{{bound, bound}};
    const bool is_strict = op == ExprOp::kLess || op == ExprOp::kGreater;
    const bool is_last = rises == (op == ExprOp::kLess || op == ExprOp::kLessEqual);
    if (!is_strict) return Ranges{is_last ? Bounds{-1, bound} : Bounds{bound, -1}};
    const int inside =
        builder_.make(is_last ? ExprOp::kSubtract : ExprOp::kAdd, bound, builder_.integer(1));
    return Ranges{is_last ? Bounds{-1, inside} : Bounds{inside, -1}};
  }

  int difference(std::int32_t a, std::int32_t b) {
    return builder_.make(ExprOp::kSubtract, at_first_key_[static_cast<std::size_t>(a)],
                         at_first_key_[static_cast<std::size_t>(b)]);
  }

  Ranges intersected(const Ranges& a, const Ranges& b) {
    Ranges both;
    for (const Bounds& left : a)
      for (const Bounds& right : b)
        both.push_back({merged(ExprOp::kMax, left.first, right.first),
                        merged(ExprOp::kMin, left.last, right.last)});
    return both;
  }
  int merged(ExprOp op, int a, int b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return builder_.make(op, a, b);
  }
  static Ranges united(Ranges a, const Ranges& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  static std::optional<Ranges> limited(Ranges ranges) {
    if (ranges.size() > static_cast<std::size_t>(kMostKeyRanges)) return std::nullopt;
    return ranges;
  }

  int moved(std::int32_t id) const { return moved_[static_cast<std::size_t>(id)]; }
  Expr extract(int id) const { return id < 0 ? Expr{} : fold(builder_.extract(id, parameters_)); }

  std::vector<ParamSymbol> parameters_;
  ExprBuilder builder_;
  AlongTokens along_{builder_, parameters_};
  std::vector<int> moved_, at_first_key_;  ///< of each node: itself, and with k = 0
};

}  // namespace

std::vector<KeyRange> key_ranges(const Expr& mask) {
  if (mask.empty()) return {};
  const Expr opened = open_comparisons(mask).mask;
  return RangeFinder(opened).find(opened);
}

}  // namespace lacuna
