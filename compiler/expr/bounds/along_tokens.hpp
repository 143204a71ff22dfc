// How the parts of an expression change along the keys of a row, or along the queries of a column:
// not at all, by a constant step, or in some other way.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/expr/bounds/ranges.hpp"
#include "compiler/expr/builder.hpp"

namespace lacuna {

class AlongTokens {
 public:
  /// Of nodes of `builder`, which may grow. `token`: Variable::kK, or Variable::kQ.
  explicit AlongTokens(ExprBuilder& builder, Variable token = Variable::kK)
      : builder_(builder), token_(token) {}
  /// Along the keys, with the ranges that are declared for parameters.
  AlongTokens(ExprBuilder& builder, std::span<const ParamSymbol> parameters)
      : builder_(builder), parameters_(parameters) {}

  /// Does the part below a node read the logit?
  bool reads_score(int id) { return facts(id).reads_s; }
  /// Does it read the token?
  bool reads_token(int id) { return facts(id).reads_token; }
  /// Of an integer: may its exact value not fit i32?
  bool may_wrap(int id) { return facts(id).may_wrap; }
  /// May the exact result of an operator on two integers not fit i32? Ask before the node is made:
  /// two literals are folded to one literal, which has wrapped by then.
  bool may_wrap(ExprOp op, int a, int b);

  /// What a number gains from a token to the next, itself without the token: a new node, of the
  /// same type. nullopt: not always the same, or integers that may wrap.
  std::optional<int> slope_of(int id);

 private:
  struct Facts {
    bool reads_s = false, reads_token = false;
    bool may_wrap = false;  ///< i32: its exact value may not fit
    ValueRange range = {};
  };
  const Facts& facts(int id);
  Facts facts_of(const ExprNode& node) const;
  std::optional<int> slope_of_product(const ExprNode& node);

  ExprBuilder& builder_;
  Variable token_ = Variable::kK;
  std::span<const ParamSymbol> parameters_;
  std::vector<Facts> facts_;  ///< of the builder's first nodes
};

}  // namespace lacuna
