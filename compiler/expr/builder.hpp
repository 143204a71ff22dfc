// Builds typed expressions: equal nodes are made once, and constants and identities fold as nodes
// are made. The parser, fold and interval analysis all build through this.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

class ExprBuilder {
 public:
  ExprBuilder();

  /// Ids of nodes. Operands have the types that the operator wants; the result type follows.
  int literal(ExprType type, double value);
  int boolean(bool value) { return literal(ExprType::kBool, value ? 1 : 0); }
  int integer(std::int32_t value) { return literal(ExprType::kI32, value); }
  int real(float value) { return literal(ExprType::kF32, static_cast<double>(value)); }
  int variable(Variable variable);
  int parameter(int index, ExprType type, const ExprChildren& indices);
  int make(ExprOp op, int a, int b = -1, int c = -1);

  /// A node of another expression whose children are already here.
  int copy(const ExprNode& node, const ExprChildren& children);

  /// All nodes of another expression, or the first so many: the id of each.
  std::vector<int> copy_each(std::span<const ExprNode> nodes);
  /// The same; the id of the last of them.
  int copy_all(std::span<const ExprNode> nodes);

  /// The node as it is, without folding: for comparing expressions.
  int intern(const ExprNode& node);

  /// The source range of a node, unless it has one already.
  void locate(int id, std::uint32_t begin, std::uint32_t end);

  const ExprNode& operator[](int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }

  /// Nodes of the expression written out as a tree, i.e. the length of its text.
  std::uint32_t tree_size(int id) const { return tree_sizes_[static_cast<std::size_t>(id)]; }

  /// The expression that ends in `root`: what it reaches, in post-order. Text is left empty.
  Expr extract(int root, std::vector<ParamSymbol> parameters) const;

 private:
  void grow();

  std::vector<ExprNode> nodes_;
  std::vector<std::uint32_t> tree_sizes_;
  std::vector<std::int32_t> table_;  ///< open addressing, ids; -1: free
};

/// Where a node's children have gone: `moved` has the new id of each node before it.
ExprChildren moved_children(const ExprNode& node, const std::vector<int>& moved);

/// The expression with the node replace(node, children) in the place of each; `children` have been
/// replaced before. Text and places in it stay. `expr` is not empty.
template <class Replace>
Expr rewritten(ExprBuilder& builder, const Expr& expr, std::vector<ParamSymbol> parameters,
               const Replace& replace) {
  std::vector<int> moved;
  moved.reserve(expr.nodes.size());
  for (const ExprNode& node : expr.nodes) {
    moved.push_back(replace(node, moved_children(node, moved)));
    builder.locate(moved.back(), node.begin, node.end);
  }
  Expr result = builder.extract(moved.back(), std::move(parameters));
  result.text = expr.text;
  return result;
}

/// The type of `op` on a and b.
ExprType result_type(const ExprBuilder& builder, ExprOp op, int a, int b);

/// The node that `op` on a, b, c equals, folded; -1 if nothing folds. Part of ExprBuilder::make.
int simplify(ExprBuilder& builder, ExprOp op, int a, int b, int c);

}  // namespace lacuna
