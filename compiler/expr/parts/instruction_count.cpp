#include "compiler/expr/parts/instruction_count.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compiler/expr/nodes/constant_parts.hpp"

namespace lacuna {
namespace {

/// Estimates, of what the machine code of sm_90a has: they need to tell a formula of 40
/// instructions from one of 400.
constexpr int kOfElement = 6, kOfIndex = 6, kOfHash = 16, kOfTanh = 20, kOfDivision = 16,
              kOfFunction = 4, kOfLiteralDivisor = 6, kOfDivisor = 12, kOfAnyDivisor = 40;

int of_division(const Expr& part, const ExprNode& node, const std::vector<bool>& changes,
                bool has_divisors) {
  const auto divisor = static_cast<std::size_t>(node.children[1]);
  if (part.nodes[divisor].op == ExprOp::kLiteral) return kOfLiteralDivisor;
  return has_divisors && !changes[divisor] ? kOfDivisor : kOfAnyDivisor;
}

int of_node(const Expr& part, const ExprNode& node, const std::vector<bool>& changes,
            bool has_divisors) {
  switch (node.op) {
    case ExprOp::kLiteral:
    case ExprOp::kVariable:
      return 0;
    case ExprOp::kParameter:
      return kOfElement + kOfIndex * static_cast<int>(std::ranges::count_if(
                                         node.children, [](int child) { return child >= 0; }));
    case ExprOp::kFloorDivide:
    case ExprOp::kModulo:
      return of_division(part, node, changes, has_divisors);
    case ExprOp::kHash:
      return kOfHash;
    case ExprOp::kTanh:
      return kOfTanh;
    case ExprOp::kDivide:
    case ExprOp::kSqrt:
      return kOfDivision;
    default:
      return is_special_function(node.op) ? kOfFunction : 1;
  }
}

}  // namespace

int instruction_count(const Expr& part, std::span<const Variable> changing, bool has_divisors) {
  const std::vector<bool> changes = changing_nodes(part, changing);
  int count = 0;
  for (std::size_t n = 0; n < part.nodes.size(); ++n)
    if (changes[n]) count += of_node(part, part.nodes[n], changes, has_divisors);
  return count;
}

}  // namespace lacuna
