// Which values a node can take, from the operators alone: tells interval analysis and the CUDA
// printer where index arithmetic might leave 32 bits.
#pragma once

#include <span>

#include "compiler/expr/expr.hpp"

namespace lacuna {

struct ValueRange {
  double min = 0, max = 0;
};

/// Tokens, heads and i32 parameters are taken to be below this in magnitude.
inline constexpr double kMaxIndex = 1 << 24;

/// Everything that the type can hold.
ValueRange full_range(ExprType type);
ValueRange literal_range(double value);
ValueRange variable_range(Variable variable);
ValueRange parameter_range(ExprType type);
/// Within what is declared of it.
ValueRange parameter_range(const ParamSymbol& symbol);

/// Range of an operator's exact result, before it wraps; `operand` is the type of its operands.
ValueRange operator_range(ExprOp op, ExprType operand, std::span<const ValueRange> operands);

/// The same of any node, leaves included; `operand` means nothing for leaves.
ValueRange node_range(const ExprNode& node, ExprType operand, std::span<const ValueRange> operands);

bool fits_i32(const ValueRange& range);

/// What is left of a range when its node has wrapped.
ValueRange wrapped_range(ExprType type, const ValueRange& range);

/// Finite with room for rounding.
bool is_finite(const ValueRange& range);

}  // namespace lacuna
