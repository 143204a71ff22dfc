// Which keys a row sees, where the mask says so by bounds on k: as one or two ranges of keys, which
// a kernel works out once for a row instead of asking the mask about each key.
//
//   k <= q and k >= start[q]                   [start[q], q]
//   k <= min(q, last[q])  and  max(q - k, k - q) < window      too, side by side
//   k <= q and (k < sink or q - k < window)    [0, min(q, sink - 1)], [q - window + 1, q]
#pragma once

#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// From `first` to `last`, both of them included; none if first > last. Neither reads k.
struct KeyRange {
  Expr first;  ///< empty: from the first key on
  Expr last;   ///< empty: to the last key
};

inline constexpr int kMostKeyRanges = 2;

/// Ranges that may overlap, at most kMostKeyRanges; none: the mask, of Site::kMask, is not of this
/// kind.
std::vector<KeyRange> key_ranges(const Expr& mask);

}  // namespace lacuna
