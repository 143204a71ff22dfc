// What a spec declares of the parameters that a formula reads.
#pragma once

#include <span>

#include "compiler/expr/bounds/decided.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

/// Parameters within their `range`, but for those behind `params`, which a pass has added;
/// variables as the language has them.
ReadRanges declared_ranges(const Expr& expr, std::span<const ParamSpec> params);

/// Tells the parameter's symbol, which formulas know, of the range.
void note_declared_range(ParamSpec& param);

}  // namespace lacuna
