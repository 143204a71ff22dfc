#include "compiler/expr/bounds/interval.hpp"

#include <algorithm>

#include "compiler/expr/bounds/interval_arithmetic.hpp"
#include "compiler/expr/bounds/open_comparisons.hpp"
#include "compiler/expr/print_expr.hpp"
#include "compiler/expr/rounded_down.hpp"

namespace lacuna {
namespace {

// A classification longer than this is worth less than the tiles it would save.
constexpr std::uint32_t kMaxClassifierSize = 16384;

class Analysis {
 public:
  explicit Analysis(const Expr& mask) : mask_(mask) {}

  TileClassifier run() {
    bounds_.reserve(mask_.nodes.size());
    for (const ExprNode& node : mask_.nodes) {
      varies_.push_back(varies(node));
      bounds_.push_back(varies_.back() ? bounds(node) : constant_bounds(node));
    }
    const Bounds& result = bounds_.back();
    return {classifier(result.lo, false), classifier(result.hi, true)};
  }

  /// After `run`: the first comparison of a number that has no bounds, or is computed from one; -1:
  /// none.
  int unsettled() const {
    std::vector<bool> is_open;
    is_open.reserve(bounds_.size());
    for (std::size_t n = 0; n < bounds_.size(); ++n) {
      const ExprNode& node = mask_.nodes[n];
      const bool reads_open = std::ranges::any_of(node.children, [&](std::int32_t child) {
        return child >= 0 && is_open[static_cast<std::size_t>(child)];
      });
      if (reads_open && is_comparison(node.op)) return static_cast<int>(n);
      is_open.push_back(varies_[n] && (reads_open || has_no_bounds(node.type, bounds_[n])));
    }
    return -1;
  }

 private:
  const Bounds& child(const ExprNode& node, std::size_t n) const {
    return bounds_[static_cast<std::size_t>(node.children[n])];
  }
  bool child_varies(const ExprNode& node, std::size_t n) const {
    return node.children[n] >= 0 && varies_[static_cast<std::size_t>(node.children[n])];
  }
  ExprType operand_type(const ExprNode& node) const {
    const std::size_t n = node.op == ExprOp::kSelect ? 1 : 0;
    return mask_.nodes[static_cast<std::size_t>(node.children[n])].type;
  }
  /// As `unknown` makes them.
  bool has_no_bounds(ExprType type, const Bounds& a) const {
    const auto is_end = [&](int node, double end) {
      return builder_[node].op == ExprOp::kLiteral && builder_[node].literal == end;
    };
    const ValueRange all = full_range(type);
    return type != ExprType::kBool && is_end(a.lo, all.min) && is_end(a.hi, all.max);
  }
  int make(ExprOp op, int a, int b = -1) { return builder_.make(op, a, b); }
  int both(int a, int b) { return make(ExprOp::kAnd, a, b); }
  int either(int a, int b) { return make(ExprOp::kOr, a, b); }

  bool varies(const ExprNode& node) const {
    if (node.op == ExprOp::kVariable) {
      return node.symbol == static_cast<std::uint16_t>(Variable::kQ) ||
             node.symbol == static_cast<std::uint16_t>(Variable::kK);
    }
    for (std::size_t n = 0; n < node.children.size(); ++n)
      if (child_varies(node, n)) return true;
    return false;
  }

  std::vector<Bounds> operands(const ExprNode& node) const {
    std::vector<Bounds> list;
    for (std::size_t n = 0; n < node.children.size() && node.children[n] >= 0; ++n) {
      list.push_back(child(node, n));
    }
    return list;
  }

  /// The node itself: it is the same for the whole tile.
  Bounds constant_bounds(const ExprNode& node) {
    ExprChildren children = node.children;
    for (std::size_t n = 0; n < children.size(); ++n) {
      if (children[n] >= 0) children[n] = child(node, n).lo;
    }
    const int copied = builder_.copy(node, children);
    const bool is_number = node.op == ExprOp::kLiteral || node.op == ExprOp::kToF32;
    return point(builder_, copied, constant_range(node), node.type == ExprType::kF32 && !is_number);
  }

  ValueRange constant_range(const ExprNode& node) const {
    if (node.type == ExprType::kBool) return full_range(ExprType::kBool);
    std::array<ValueRange, kMaxParamRank> ranges;
    std::size_t count = 0;
    for (; count < ranges.size() && node.children[count] >= 0; ++count) {
      ranges[count] = child(node, count).range;
    }
    const ExprType operand = count > 0 ? operand_type(node) : node.type;
    return wrapped_range(node.type, node_range(node, operand, {ranges.data(), count}));
  }

  Bounds bounds(const ExprNode& node) {
    switch (node.op) {
      case ExprOp::kVariable: {
        const bool is_query = node.symbol == static_cast<std::uint16_t>(Variable::kQ);
        return {builder_.variable(is_query ? Variable::kQ0 : Variable::kK0),
                builder_.variable(is_query ? Variable::kQ1 : Variable::kK1), builder_.boolean(true),
                variable_range(Variable::kQ), false};
      }
      case ExprOp::kParameter:
        return parameter(node);
      case ExprOp::kNot: {
        const Bounds& a = child(node, 0);
        return decision(make(ExprOp::kNot, a.hi), make(ExprOp::kNot, a.lo));
      }
      case ExprOp::kAnd:
      case ExprOp::kOr: {
        const Bounds &a = child(node, 0), &b = child(node, 1);
        return decision(make(node.op, a.lo, b.lo), make(node.op, a.hi, b.hi));
      }
      case ExprOp::kSubtract:
        if (is_rounded_down(mask_, node)) return rounded_down(node);
        return operator_bounds(builder_, node.op, operand_type(node), operands(node));
      default:
        if (is_comparison(node.op)) return comparison(node.op, child(node, 0), child(node, 1));
        return operator_bounds(builder_, node.op, operand_type(node), operands(node));
    }
  }

  /// Operands would be bounded each by itself, as if the remainder could be any in a tile.
  Bounds rounded_down(const ExprNode& node) {
    const Bounds& a = child(node, 0);
    const ExprNode& remainder = mask_.nodes[static_cast<std::size_t>(node.children[1])];
    const Bounds& by = child(remainder, 1);
    const ValueRange of_parameter = parameter_range(symbol_of(remainder.children[1]));
    const ValueRange range = {a.range.min - of_parameter.max + 1, a.range.max};
    if (!fits_i32(range)) return unknown(builder_, node.type);
    const auto rounded = [&](int end) {
      return make(ExprOp::kSubtract, end, make(ExprOp::kModulo, end, by.lo));
    };
    return {rounded(a.lo), rounded(a.hi), both(a.guard, by.guard), range, false};
  }
  const ParamSymbol& symbol_of(std::int32_t parameter) const {
    return mask_.parameters[mask_.nodes[static_cast<std::size_t>(parameter)].symbol];
  }

  Bounds decision(int must, int may) {
    return {must, may, builder_.boolean(true), full_range(ExprType::kBool), false};
  }

  Bounds comparison(ExprOp op, const Bounds& a, const Bounds& b) {
    int must = -1, may = -1;
    switch (op) {
      case ExprOp::kLess:
      case ExprOp::kLessEqual:
        must = make(op, a.hi, b.lo);
        may = make(op, a.lo, b.hi);
        break;
      case ExprOp::kGreater:
      case ExprOp::kGreaterEqual:
        must = make(op, a.lo, b.hi);
        may = make(op, a.hi, b.lo);
        break;
      case ExprOp::kEqual:
        must = both(make(op, a.lo, b.hi), make(op, a.hi, b.lo));
        may = both(make(ExprOp::kLessEqual, a.lo, b.hi), make(ExprOp::kLessEqual, b.lo, a.hi));
        break;
      default:
        must = either(make(ExprOp::kLess, a.hi, b.lo), make(ExprOp::kLess, b.hi, a.lo));
        may = either(make(op, a.lo, b.hi), make(op, a.hi, b.lo));
        break;
    }
    const int guard = both(a.guard, b.guard);
    return decision(both(guard, must), either(make(ExprOp::kNot, guard), may));
  }

  Bounds parameter(const ExprNode& node) {
    const ParamSymbol& symbol = mask_.parameters[node.symbol];
    const std::size_t last = symbol.shape.size() - 1;
    ExprChildren low = kNoChildren, high = kNoChildren;
    int guard = builder_.boolean(true);
    for (std::size_t d = 0; d <= last; ++d) {
      if (d < last && child_varies(node, d)) return unknown(builder_, node.type);
      low[d] = child(node, d).lo;
      high[d] = child(node, d).hi;
      guard = both(guard, child(node, d).guard);
    }
    if (!symbol.monotone) return unknown(builder_, node.type);
    return {builder_.parameter(node.symbol, node.type, low),
            builder_.parameter(node.symbol, node.type, high), guard, parameter_range(node.type),
            false};
  }

  /// `fallback` is the answer that is always sound.
  Expr classifier(int root, bool fallback) {
    if (builder_.tree_size(root) > kMaxClassifierSize) root = builder_.boolean(fallback);
    Expr expr = builder_.extract(root, mask_.parameters);
    for (ExprNode& node : expr.nodes) node.begin = node.end = 0;  // `text` is not the mask's
    expr.text = print_expr(expr);
    return expr;
  }

  const Expr& mask_;
  ExprBuilder builder_;
  std::vector<bool> varies_;
  std::vector<Bounds> bounds_;
};

}  // namespace

namespace {

/// A quotient by a parameter takes a division for each end of a tile, and more where the other side
/// of the comparison is one: two multiples of it say as much as four quotients.
Expr mask_to_analyse(const Expr& mask) {
  const OpenedMask opened = open_comparisons(mask);
  return opened.opens_parameter ? opened.mask : mask;
}

}  // namespace

std::string unsettled_comparison(const Expr& mask) {
  Expr part = mask_to_analyse(mask);
  Analysis analysis(part);
  analysis.run();
  const int found = analysis.unsettled();
  if (found < 0) return "";
  part.nodes.resize(static_cast<std::size_t>(found) + 1);
  return print_expr(part);
}

TileClassifier classify_mask(const Expr& mask) {
  if (!mask.empty()) {
    const Expr analysed = mask_to_analyse(mask);
    return Analysis(analysed).run();
  }
  ExprBuilder builder;
  Expr always = builder.extract(builder.boolean(true), {});
  always.text = print_expr(always);
  return {always, always};
}

}  // namespace lacuna
