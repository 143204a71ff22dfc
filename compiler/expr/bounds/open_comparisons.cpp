#include "compiler/expr/bounds/open_comparisons.hpp"

#include <optional>
#include <vector>

#include "compiler/expr/bounds/along_tokens.hpp"
#include "compiler/expr/rounded_down.hpp"

namespace lacuna {
namespace {

class ComparisonOpener {
 public:
  explicit ComparisonOpener(const Expr& mask)
      : parameters_(mask.parameters), along_(builder_, mask.parameters) {}

  OpenedMask open(const Expr& mask) {
    std::vector<int> moved;
    for (const ExprNode& node : mask.nodes) {
      const ExprChildren children = moved_children(node, moved);
      const bool compares = node.op >= ExprOp::kLess && node.op <= ExprOp::kEqual;
      moved.push_back(compares && builder_[children[0]].type == ExprType::kI32
                          ? compare(node.op, children[0], children[1])
                          : builder_.copy(node, children));
    }
    return {builder_.extract(moved.back(), mask.parameters), opens_parameter_};
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
    if (!is_positive(builder_[divisor])) return std::nullopt;
    const auto multiple = multiple_of(divisor, other);
    if (!multiple || along_.may_wrap(ExprOp::kAdd, *multiple, divisor)) return std::nullopt;
    const int first = *multiple, behind = builder_.make(ExprOp::kAdd, first, divisor);
    opens_parameter_ |= builder_[divisor].op == ExprOp::kParameter;
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

  bool is_positive(const ExprNode& node) const {
    return node.op == ExprOp::kLiteral
               ? node.literal > 0
               : node.op == ExprOp::kParameter && is_positive_of_head(parameters_[node.symbol]);
  }

  /// Is a node, or an addend of it, something // divisor, of a parameter?
  bool has_quotient_by(int divisor, int id) const {
    const ExprNode& node = builder_[id];
    const int a = node.children[0], b = node.children[1];
    if (node.op == ExprOp::kFloorDivide)
      return b == divisor && builder_[divisor].op == ExprOp::kParameter;
    return (node.op == ExprOp::kAdd || node.op == ExprOp::kSubtract) &&
           (has_quotient_by(divisor, a) || has_quotient_by(divisor, b));
  }

  /// divisor * times, if it fits i32. Of a parameter and a token the product might not, and where
  /// it does, a tile has no bounds of it; but (q // chunk) * chunk is q - q % chunk.
  std::optional<int> multiple_of(int divisor, int times) {
    const bool may_wrap = along_.may_wrap(ExprOp::kMultiply, times, divisor);
    if (!may_wrap && !has_quotient_by(divisor, times))
      return builder_.make(ExprOp::kMultiply, times, divisor);
    const ExprNode node = builder_[times];
    const int a = node.children[0], b = node.children[1];
    if (node.op == ExprOp::kFloorDivide && b == divisor)
      return builder_.make(ExprOp::kSubtract, a, builder_.make(ExprOp::kModulo, a, b));
    if (node.op != ExprOp::kAdd && node.op != ExprOp::kSubtract) return std::nullopt;
    const auto left = multiple_of(divisor, a), right = multiple_of(divisor, b);
    if (!left || !right || along_.may_wrap(node.op, *left, *right)) return std::nullopt;
    return builder_.make(node.op, *left, *right);
  }

  const std::vector<ParamSymbol>& parameters_;
  ExprBuilder builder_;
  AlongTokens along_;
  bool opens_parameter_ = false;
};

}  // namespace

OpenedMask open_comparisons(const Expr& mask) { return ComparisonOpener(mask).open(mask); }

}  // namespace lacuna
