#include "compiler/expr/parts/score_parts.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/expr/bounds/along_tokens.hpp"
#include "compiler/expr/builder.hpp"
#include "compiler/expr/fold.hpp"

namespace lacuna {
namespace {

/// One of the numbers that a formula adds up.
struct Term {
  int node;
  bool is_negative;
};

class ScoreSplitter {
 public:
  explicit ScoreSplitter(const Expr& score) : parameters_(score.parameters) {
    std::vector<int> moved;
    moved.reserve(score.nodes.size());
    for (const ExprNode& node : score.nodes)
      moved.push_back(copy(node, moved_children(node, moved)));
    collect(moved.back(), false);
  }

  ScoreParts split() {
    std::vector<Term> of_score;
    for (const Term& term : terms_) {
      if (along_.reads_score(term.node)) {
        of_score.push_back(term);
      } else if (const std::optional<int> slope = along_.slope_of(term.node)) {
        add(offset_, term);
        if (!is_real(*slope, 0)) add(slope_, {*slope, term.is_negative});
      } else {
        add(rest_, term);
      }
    }
    split_core(of_score);
    const bool rest_is_inside = rest_ < 0 && take_rest_from_core();
    return {is_real(factor_, 1) ? Expr{} : extract(factor_),
            is_s(core_) ? Expr{} : extract(core_),
            extract(offset_),
            extract(slope_),
            extract(rest_),
            rest_is_inside};
  }

 private:
  /// As ExprBuilder::copy; what changes with s or k is divided by multiplying.
  int copy(const ExprNode& node, const ExprChildren& children) {
    if (node.op == ExprOp::kDivide && changes(children[0]) && !changes(children[1])) {
      const int reciprocal = builder_.make(ExprOp::kDivide, builder_.real(1), children[1]);
      return builder_.make(ExprOp::kMultiply, children[0], reciprocal);
    }
    return builder_.copy(node, children);
  }

  bool changes(int id) { return along_.reads_score(id) || along_.reads_token(id); }
  bool is_s(int id) const { return id >= 0 && is_variable(builder_[id], Variable::kS); }
  bool is_real(int id, double value) const {
    return builder_[id].op == ExprOp::kLiteral && builder_[id].literal == value;
  }

  void collect(int id, bool is_negative) {
    const ExprNode node = builder_[id];
    switch (node.op) {
      case ExprOp::kAdd:
      case ExprOp::kSubtract:
        collect(node.children[0], is_negative);
        collect(node.children[1], is_negative != (node.op == ExprOp::kSubtract));
        return;
      case ExprOp::kNegate:
        collect(node.children[0], !is_negative);
        return;
      default:
        terms_.push_back({id, is_negative});
    }
  }

  void add(int& sum, const Term& term) {
    if (sum < 0) {
      sum = term.is_negative ? builder_.make(ExprOp::kNegate, term.node) : term.node;
    } else {
      sum = builder_.make(term.is_negative ? ExprOp::kSubtract : ExprOp::kAdd, sum, term.node);
    }
  }

  /// Factors of the query alone are taken out where the core is one product.
  void split_core(const std::vector<Term>& terms) {
    factor_ = builder_.real(1);
    if (terms.size() != 1) {
      for (const Term& term : terms) add(core_, term);
      if (terms.empty()) factor_ = core_ = builder_.real(0);
      return;
    }
    core_ = terms[0].node;
    const auto negate = [&] {
      factor_ = builder_.make(ExprOp::kMultiply, factor_, builder_.real(-1));
    };
    if (terms[0].is_negative) negate();
    for (;;) {
      const ExprNode node = builder_[core_];
      auto [core, other] = std::pair(node.children[0], node.children[1]);
      if (node.op == ExprOp::kNegate) {
        negate();
      } else if (node.op == ExprOp::kMultiply) {
        if (changes(other)) std::swap(core, other);
        if (changes(other)) return;
        factor_ = builder_.make(ExprOp::kMultiply, factor_, other);
      } else {
        return;
      }
      core_ = core;
    }
  }

  /// What is added to s in the core changes with k, and all of the core's readings of s are in that
  /// sum: it becomes the rest, and the sum s.
  bool take_rest_from_core() {
    const int s = builder_.variable(Variable::kS);
    for (int sum = core_; sum >= 0; --sum) {  // the largest first: operands have lower ids
      const std::optional<int> added = added_to_s(sum);
      if (!added || !along_.reads_token(*added)) continue;
      const int core = with(core_, sum, s);
      if (along_.reads_score(with(core_, sum, builder_.real(0)))) continue;
      core_ = core, rest_ = *added;
      return true;
    }
    return false;
  }

  /// Of s + a - b: a - b. nullopt: the node is no sum that reads s once, as it is.
  std::optional<int> added_to_s(int sum) {
    const ExprOp op = builder_[sum].op;
    if (op != ExprOp::kAdd && op != ExprOp::kSubtract) return std::nullopt;
    terms_.clear();
    collect(sum, false);
    int added = -1, times = 0;
    for (const Term& term : std::vector<Term>(terms_)) {
      if (is_s(term.node) && !term.is_negative) {
        ++times;
      } else if (along_.reads_score(term.node)) {
        return std::nullopt;
      } else {
        add(added, term);
      }
    }
    return times == 1 && added >= 0 ? std::optional(added) : std::nullopt;
  }

  /// The part below `root`, with `other` in the place of `node`.
  int with(int root, int node, int other) {
    std::vector<int> moved;
    for (int id = 0; id <= root; ++id) {
      const ExprNode old = builder_[id];
      moved.push_back(id == node ? other : builder_.copy(old, moved_children(old, moved)));
    }
    return moved.back();
  }

  Expr extract(int id) const { return id < 0 ? Expr{} : fold(builder_.extract(id, parameters_)); }

  ExprBuilder builder_;
  AlongTokens along_{builder_};
  std::vector<ParamSymbol> parameters_;
  std::vector<Term> terms_;
  int factor_ = -1, core_ = -1, offset_ = -1, slope_ = -1, rest_ = -1;
};

}  // namespace

ScoreParts split_score(const Expr& score) { return ScoreSplitter(score).split(); }

}  // namespace lacuna
