// Interval analysis of a mask: is a tile full, partial or empty?
//
// The answer is itself a pair of expressions over the tile's bounds (Site::kTile), so the device,
// the CPU code and the interpreter classify tiles with the same printed or lowered formula and
// there is no N x N mask anywhere. Sound: `must` implies every (q, k) of the tile is visible; not
// `may` implies none is. Exact for linear comparisons in which q and k occur once (causal, window,
// document).
//
// Assumed: tokens and i32 parameters are below 2^24 in magnitude. What could leave 32 bits even
// then (hashes) counts as unknown. A `monotone` parameter is non-decreasing and holds no NaN.
#pragma once

#include <string>

#include "compiler/expr/expr.hpp"

namespace lacuna {

struct TileClassifier {
  Expr must;  ///< every pair of the tile is visible: full
  Expr may;   ///< some pair of the tile may be visible: not empty
};

/// q in [q0, q1], k in [k0, k1], inclusive. An empty mask gives must = may = true.
TileClassifier classify_mask(const Expr& mask);

/// The first comparison of a mask that the bounds of a tile never settle, because numbers on its
/// sides might overflow, or have no bounds; as text, "": there is none.
std::string unsettled_comparison(const Expr& mask);

}  // namespace lacuna
