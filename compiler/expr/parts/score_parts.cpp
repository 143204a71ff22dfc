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
    return {is_real(factor_, 1) ? Expr{} : extract(factor_), is_s(core_) ? Expr{} : extract(core_),
            extract(offset_), extract(slope_), extract(rest_)};
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
