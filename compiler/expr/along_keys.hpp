// How the parts of an expression change along the keys of a row: not at all, evenly, or anyhow.
#pragma once

#include <optional>
#include <vector>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/ranges.hpp"

namespace lacuna {

class AlongKeys {
 public:
  /// Of nodes of `builder`, which may grow.
  explicit AlongKeys(ExprBuilder& builder) : builder_(builder) {}

  /// Does the part below a node read a variable? Variable::kS or Variable::kK.
  bool reads(int id, Variable variable);

  /// What a number gains from a key to the next, itself without k: a new node, of the same type.
  /// nullopt: not always the same, or integers that may wrap.
  std::optional<int> slope_of(int id);

 private:
  struct Facts {
    bool reads_s = false, reads_k = false;
    bool may_wrap = false;  ///< i32: its exact value may not fit
    ValueRange range = {};
  };
  const Facts& facts(int id);
  Facts facts_of(const ExprNode& node) const;
  std::optional<int> slope_of_product(const ExprNode& node);

  ExprBuilder& builder_;
  std::vector<Facts> facts_;  ///< of the builder's first nodes
};

}  // namespace lacuna
