// Bounds of numeric operators, as expressions over the tile. Part of interval analysis.
//
// f32 arithmetic rounds monotonically, so bounds computed with the same operators hold to the last
// bit; what NaN and infinities would break is stated in `guard`.
#pragma once

#include <vector>

#include "compiler/expr/bounds/ranges.hpp"
#include "compiler/expr/builder.hpp"

namespace lacuna {

/// Where `guard` holds, every value in the tile lies in [lo, hi], or every value and both bounds
/// are NaN. A bool has the bounds false < true: lo is `must`, hi is `may`, and its guard is true.
struct Bounds {
  int lo = -1, hi = -1, guard = -1;  ///< nodes
  ValueRange range;                  ///< known without looking at the tile
  bool maybe_nan = false;
  bool is_point() const { return lo == hi; }
};

/// The bounds of a node that is the same for the whole tile.
Bounds point(ExprBuilder& builder, int node, const ValueRange& range, bool maybe_nan);

/// Anything the type can hold.
Bounds unknown(ExprBuilder& builder, ExprType type);

/// Bounds of a numeric operator; falls back to `unknown` where i32 may overflow or where the
/// bounds would be long. `operand` is the type of the operands.
Bounds operator_bounds(ExprBuilder& builder, ExprOp op, ExprType operand,
                       std::vector<Bounds> operands);

}  // namespace lacuna
