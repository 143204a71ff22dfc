#include "compiler/expr/parts/index_parts.hpp"

#include <cstddef>
#include <utility>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/nodes/constant_parts.hpp"

namespace lacuna {
namespace {

constexpr Variable kOfRow[] = {Variable::kQ}, kOfKey[] = {Variable::kK};

class IndexSplitter {
 public:
  explicit IndexSplitter(const Expr& element)
      : element_(element),
        of_row_(changing_nodes(element, kOfRow)),
        of_key_(changing_nodes(element, kOfKey)),
        copied_(builder_.copy_each(element.nodes)) {}

  std::optional<IndexParts> split(std::int32_t index) {
    const auto parts = parts_of(index);
    if (!parts) return std::nullopt;
    return IndexParts{builder_.extract(parts->first, element_.parameters),
                      builder_.extract(parts->second, element_.parameters)};
  }

 private:
  using Parts = std::pair<int, int>;

  std::optional<Parts> parts_of(std::int32_t id) {
    const ExprNode& node = element_.nodes[static_cast<std::size_t>(id)];
    const int copied = copied_[static_cast<std::size_t>(id)];
    if (!of_key_[static_cast<std::size_t>(id)]) return Parts{copied, builder_.integer(0)};
    if (!of_row_[static_cast<std::size_t>(id)]) return Parts{builder_.integer(0), copied};
    switch (node.op) {
      case ExprOp::kNegate:
        return combined(node, parts_of(node.children[0]), Parts{-1, -1});
      case ExprOp::kAdd:
      case ExprOp::kSubtract:
        return combined(node, parts_of(node.children[0]), parts_of(node.children[1]));
      default:
        return std::nullopt;
    }
  }

  std::optional<Parts> combined(const ExprNode& node, const std::optional<Parts>& a,
                                const std::optional<Parts>& b) {
    if (!a || !b) return std::nullopt;
    return Parts{builder_.make(node.op, a->first, b->first),
                 builder_.make(node.op, a->second, b->second)};
  }

  const Expr& element_;
  const std::vector<bool> of_row_, of_key_;
  ExprBuilder builder_;
  const std::vector<int> copied_;  ///< nodes of the element, as the builder has them
};

}  // namespace

std::optional<std::vector<IndexParts>> index_parts(const Expr& element) {
  if (element.empty() || element.root().op != ExprOp::kParameter) return std::nullopt;
  IndexSplitter splitter(element);
  std::vector<IndexParts> indices;
  for (const std::int32_t index : element.root().children) {
    if (index < 0) break;
    auto parts = splitter.split(index);
    if (!parts) return std::nullopt;
    indices.push_back(std::move(*parts));
  }
  return indices;
}

}  // namespace lacuna
