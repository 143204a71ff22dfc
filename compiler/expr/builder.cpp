#include "compiler/expr/builder.hpp"

#include <algorithm>
#include <bit>

#include "compiler/expr/expr_tables.hpp"

namespace lacuna {
namespace {

constexpr std::uint32_t kMaxTreeSize = 1u << 30;

std::uint64_t hash_of(const ExprNode& node) {
  std::uint64_t hash = (static_cast<std::uint64_t>(node.op) << 32) |
                       (static_cast<std::uint64_t>(node.type) << 16) | node.symbol;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (const std::int32_t child : node.children) mix(static_cast<std::uint32_t>(child));
  mix(std::bit_cast<std::uint64_t>(node.literal));
  return hash;
}

// Literals by bits: 0.0 and -0.0 are different values.
bool same(const ExprNode& a, const ExprNode& b) {
  return a.op == b.op && a.type == b.type && a.symbol == b.symbol && a.children == b.children &&
         std::bit_cast<std::uint64_t>(a.literal) == std::bit_cast<std::uint64_t>(b.literal);
}

}  // namespace

ExprChildren moved_children(const ExprNode& node, const std::vector<int>& moved) {
  ExprChildren children = node.children;
  for (std::int32_t& child : children) {
    if (child >= 0) child = moved[static_cast<std::size_t>(child)];
  }
  return children;
}

ExprType result_type(const ExprBuilder& builder, ExprOp op, int a, int b) {
  if (is_comparison(op)) return ExprType::kBool;
  switch (op) {
    case ExprOp::kToF32:
      return ExprType::kF32;
    case ExprOp::kToI32:
      return ExprType::kI32;
    case ExprOp::kSelect:
      return builder[b].type;
    default:
      return builder[a].type;
  }
}

ExprBuilder::ExprBuilder() : table_(64, -1) {
  nodes_.reserve(32);
  tree_sizes_.reserve(32);
}

int ExprBuilder::literal(ExprType type, double value) {
  ExprNode node;
  node.op = ExprOp::kLiteral;
  node.type = type;
  node.literal = value;
  return intern(node);
}

int ExprBuilder::variable(Variable variable) {
  ExprNode node;
  node.op = ExprOp::kVariable;
  node.type = info(variable).type;
  node.symbol = static_cast<std::uint16_t>(variable);
  return intern(node);
}

int ExprBuilder::parameter(int index, ExprType type, const ExprChildren& indices) {
  ExprNode node;
  node.op = ExprOp::kParameter;
  node.type = type;
  node.symbol = static_cast<std::uint16_t>(index);
  node.children = indices;
  return intern(node);
}

int ExprBuilder::make(ExprOp op, int a, int b, int c) {
  if (const int folded = simplify(*this, op, a, b, c); folded >= 0) return folded;
  ExprNode node;
  node.op = op;
  node.type = result_type(*this, op, a, b);
  node.children = {a, b, c, -1};
  return intern(node);
}

int ExprBuilder::copy(const ExprNode& node, const ExprChildren& children) {
  switch (node.op) {
    case ExprOp::kLiteral:
    case ExprOp::kVariable:
    case ExprOp::kParameter: {
      ExprNode leaf = node;
      leaf.children = children;
      return intern(leaf);
    }
    default:
      return make(node.op, children[0], children[1], children[2]);
  }
}

std::vector<int> ExprBuilder::copy_each(std::span<const ExprNode> nodes) {
  std::vector<int> moved;
  moved.reserve(nodes.size());
  for (const ExprNode& node : nodes) moved.push_back(copy(node, moved_children(node, moved)));
  return moved;
}

int ExprBuilder::copy_all(std::span<const ExprNode> nodes) { return copy_each(nodes).back(); }

int ExprBuilder::intern(const ExprNode& node) {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash_of(node) & mask;
  for (; table_[slot] >= 0; slot = (slot + 1) & mask) {
    if (same((*this)[table_[slot]], node)) return table_[slot];
  }
  const int id = static_cast<int>(nodes_.size());
  table_[slot] = id;
  nodes_.push_back(node);
  std::uint32_t tree_size = 1;
  for (const std::int32_t child : node.children) {
    if (child >= 0) tree_size = std::min(kMaxTreeSize, tree_size + this->tree_size(child));
  }
  tree_sizes_.push_back(tree_size);
  if (nodes_.size() * 2 > table_.size()) grow();
  return id;
}

void ExprBuilder::grow() {
  table_.assign(table_.size() * 2, -1);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    std::size_t slot = hash_of(nodes_[id]) & mask;
    while (table_[slot] >= 0) slot = (slot + 1) & mask;
    table_[slot] = static_cast<std::int32_t>(id);
  }
}

void ExprBuilder::locate(int id, std::uint32_t begin, std::uint32_t end) {
  ExprNode& node = nodes_[static_cast<std::size_t>(id)];
  if (node.end == 0) {
    node.begin = begin;
    node.end = end;
  }
}

Expr ExprBuilder::extract(int root, std::vector<ParamSymbol> parameters) const {
  std::vector<std::int32_t> moved(static_cast<std::size_t>(root) + 1, -1);
  moved.back() = 0;
  for (std::size_t id = moved.size(); id-- > 0;) {  // mark what the root reaches
    if (moved[id] < 0) continue;
    for (const std::int32_t child : nodes_[id].children) {
      if (child >= 0) moved[static_cast<std::size_t>(child)] = 0;
    }
  }
  Expr expr;
  expr.parameters = std::move(parameters);
  for (std::size_t id = 0; id < moved.size(); ++id) {
    if (moved[id] < 0) continue;
    moved[id] = static_cast<std::int32_t>(expr.nodes.size());
    ExprNode& node = expr.nodes.emplace_back(nodes_[id]);
    for (std::int32_t& child : node.children) {
      if (child >= 0) child = moved[static_cast<std::size_t>(child)];
    }
  }
  return expr;
}

}  // namespace lacuna
