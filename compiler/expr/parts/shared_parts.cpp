#include "compiler/expr/parts/shared_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/expr/nodes/along_diagonal.hpp"
#include "compiler/expr/nodes/constant_parts.hpp"
#include "compiler/expr/nodes/taken_part.hpp"
#include "compiler/expr/parts/operation_count.hpp"

namespace lacuna {
namespace {

/// What handing a value on costs, in the units of work_of: less is worked out for each score.
constexpr int kLeastWork = 3;

/// Of each node: does it depend on the key alone? It reads k, but not q, and not s, which stands
/// for the part that was taken before.
std::vector<bool> nodes_of_key(const Expr& formula) {
  constexpr Variable kKey[] = {Variable::kK}, kOthers[] = {Variable::kQ, Variable::kS};
  std::vector<bool> is_of_key = changing_nodes(formula, kKey);
  const std::vector<bool> reads_others = changing_nodes(formula, kOthers);
  for (std::size_t n = 0; n < is_of_key.size(); ++n)
    is_of_key[n] = is_of_key[n] && !reads_others[n];
  return is_of_key;
}

/// The f32 nodes that are shared and not part of another such node. A product or a negative is
/// taken only if it is the whole formula: inside of a sum the product and the sum may be rounded
/// once (FMA), and shall be so still.
std::vector<std::size_t> whole_parts(const Expr& formula, const std::vector<bool>& is_shared) {
  std::vector<std::size_t> parts;
  std::vector<bool> is_outside(formula.nodes.size(), false);
  is_outside.back() = true;
  for (std::size_t n = formula.nodes.size(); n-- > 0;) {
    if (!is_outside[n]) continue;
    const ExprNode& node = formula.nodes[n];
    const bool is_product = node.op == ExprOp::kMultiply || node.op == ExprOp::kNegate;
    const bool may_be_part = n + 1 == formula.nodes.size() || !is_product;
    if (node.type == ExprType::kF32 && may_be_part && is_shared[n]) {
      parts.push_back(n);
      continue;
    }
    for (const std::int32_t child : node.children)
      if (child >= 0) is_outside[static_cast<std::size_t>(child)] = true;
  }
  return parts;
}

/// Operations for each score, as an integer one takes: loads, special functions more.
int work_of(const ScoreCost& cost) {
  return cost.float_operations + cost.integer_operations + cost.decisions +
         4 * (cost.loads + cost.special_functions);
}

/// Takes the part that is most work out of `rest`, where `value` stands for it; empty: none is
/// enough.
Expr take_part(Expr& rest, const std::vector<bool>& is_shared, Variable value) {
  std::size_t best = 0;
  int most_work = kLeastWork - 1;
  Expr taken;
  for (const std::size_t node : whole_parts(rest, is_shared)) {
    Expr part = part_at(rest, node);
    const int work = work_of(cost_along_row(part));
    if (work <= most_work) continue;
    most_work = work, best = node;
    taken = std::move(part);
  }
  if (!taken.empty()) rest = with_variable_at(rest, best, value);
  return taken;
}

}  // namespace

std::optional<SharedParts> shared_parts(const Expr& rest) {
  if (rest.empty()) return std::nullopt;
  SharedParts parts{.of_distance = {}, .of_key = {}, .rest = rest};
  parts.of_distance = take_part(parts.rest, nodes_of_distance(parts.rest), Variable::kS);
  parts.of_key = take_part(parts.rest, nodes_of_key(parts.rest), Variable::kP);
  if (parts.of_distance.empty() && parts.of_key.empty()) return std::nullopt;
  return parts;
}

}  // namespace lacuna
