#include "compiler/expr/bounds/key_ranges.hpp"

#include <optional>

#include "compiler/expr/bounds/along_tokens.hpp"
#include "compiler/expr/fold.hpp"

namespace lacuna {
namespace {

constexpr std::int32_t kBehindAllKeys = 1 << 30;

/// Ids of nodes; -1: no bound.
struct Bounds {
  int first = -1, last = -1;
};
using Ranges = std::vector<Bounds>;

/// Comparisons of what bends or steps along k, as conditions on its straight parts:
///
///   min(a, b) <= c     a <= c or b <= c
///   max(a, b) <= c     a <= c and b <= c
///   abs(a) <= c        a <= c and -a <= c
///   a // 64 <= c       a < 64 * c + 64
///   a // 64 == c       a >= 64 * c and a < 64 * c + 64
///   b - a // 64 < c    a // 64 > b - c
class ComparisonOpener {
 public:
  Expr open(const Expr& mask) {
    std::vector<int> moved;
    for (const ExprNode& node : mask.nodes) {
      const ExprChildren children = moved_children(node, moved);
      const bool compares = node.op >= ExprOp::kLess && node.op <= ExprOp::kEqual;
      moved.push_back(compares && builder_[children[0]].type == ExprType::kI32
                          ? compare(node.op, children[0], children[1])
                          : builder_.copy(node, children));
    }
    return builder_.extract(moved.back(), mask.parameters);
  }

 private:
  int compare(ExprOp op, int left, int right) {
    for (const bool is_swapped : {false, true}) {
      const int bent = is_swapped ? right : left, other = is_swapped ? left : right;
      if (!along_.reads_token(bent)) continue;
      const auto opened = compare_bent(is_swapped ? mirrored(op) : op, bent, other);
      if (opened) return *opened;
    }
    return builder_.make(op, left, right);
  }

  /// `bent` against `other`, if `bent` is one of those above.
  std::optional<int> compare_bent(ExprOp op, int bent, int other) {
    const ExprNode node = builder_[bent];
    const int a = node.children[0], b = node.children[1];
    if (node.op == ExprOp::kFloorDivide) return compare_quotient(op, a, b, other);
    if (node.op == ExprOp::kAdd || node.op == ExprOp::kSubtract)
      return compare_sum(op, bent, other);
    if (node.op == ExprOp::kNegate)
      return compare_bent(mirrored(op), a, builder_.make(ExprOp::kNegate, other));
    if (op == ExprOp::kEqual) return std::nullopt;
    const bool is_below = op == ExprOp::kLess || op == ExprOp::kLessEqual;
    if (node.op == ExprOp::kMin || node.op == ExprOp::kMax) {
      return builder_.make((node.op == ExprOp::kMin) == is_below ? ExprOp::kOr : ExprOp::kAnd,
                           compare(op, a, other), compare(op, b, other));
    }
    if (node.op == ExprOp::kAbs) {
      return builder_.make(is_below ? ExprOp::kAnd : ExprOp::kOr, compare(op, a, other),
                           compare(op, builder_.make(ExprOp::kNegate, a), other));
    }
    return std::nullopt;
  }

  /// The one of two addends that reads k, against the others, where all of them fit i32.
  std::optional<int> compare_sum(ExprOp op, int sum, int other) {
    const ExprNode node = builder_[sum];
    const int a = node.children[0], b = node.children[1];
    const int even = along_.reads_token(a) ? b : a, bent = even == a ? b : a;
    if (along_.reads_token(even) || along_.slope_of(bent)) return std::nullopt;
    const bool is_taken_off = node.op == ExprOp::kSubtract && bent == b;
    const bool is_less = is_taken_off || node.op == ExprOp::kAdd;
    const ExprOp joins = is_less ? ExprOp::kSubtract : ExprOp::kAdd;
    const int left = is_taken_off ? even : other, right = is_taken_off ? other : even;
    if (along_.may_wrap(sum) || along_.may_wrap(joins, left, right)) return std::nullopt;
    return compare_bent(is_taken_off ? mirrored(op) : op, bent, builder_.make(joins, left, right));
  }

  /// a // divisor against `other`, where the numbers at which the quotient steps fit i32.
  std::optional<int> compare_quotient(ExprOp op, int a, int divisor, int other) {
    const ExprNode& by = builder_[divisor];
    if (by.op != ExprOp::kLiteral || by.literal <= 0) return std::nullopt;
    if (along_.may_wrap(ExprOp::kMultiply, other, divisor)) return std::nullopt;
    const int first = builder_.make(ExprOp::kMultiply, other, divisor);
    if (along_.may_wrap(ExprOp::kAdd, first, divisor)) return std::nullopt;
    const int behind = builder_.make(ExprOp::kAdd, first, divisor);
    switch (op) {
      case ExprOp::kLess:
        return compare(ExprOp::kLess, a, first);
      case ExprOp::kLessEqual:
        return compare(ExprOp::kLess, a, behind);
      case ExprOp::kGreater:
        return compare(ExprOp::kGreaterEqual, a, behind);
      case ExprOp::kGreaterEqual:
        return compare(ExprOp::kGreaterEqual, a, first);
      default:
        return builder_.make(ExprOp::kAnd, compare(ExprOp::kGreaterEqual, a, first),
                             compare(ExprOp::kLess, a, behind));
    }
  }

  ExprBuilder builder_;
  AlongTokens along_{builder_};
};

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

  ExprBuilder builder_;
  AlongTokens along_{builder_};
  std::vector<ParamSymbol> parameters_;
  std::vector<int> moved_, at_first_key_;  ///< of each node: itself, and with k = 0
};

}  // namespace

std::vector<KeyRange> key_ranges(const Expr& mask) {
  if (mask.empty()) return {};
  const Expr opened = ComparisonOpener().open(mask);
  return RangeFinder(opened).find(opened);
}

}  // namespace lacuna
