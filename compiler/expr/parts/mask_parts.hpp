// A mask, taken apart by what a kernel finds out which keys a row sees with: ranges of keys
// (key_ranges.hpp) for each row, and conditions on the distance q - k alone for each distance of a
// warp's queries and keys (along_diagonal.hpp). A key is seen where both let it through.
//
//   k <= q and q - k < window                       ranges alone
//   k <= q and (q - k) % 4 == 0                     all of it of the distance
//   k >= start[q] and keep[q - k] > 0               ranges and a condition on the distance
//   k <= q and k % 64 == 0                          neither: each pair is asked
#pragma once

#include <vector>

#include "compiler/expr/bounds/key_ranges.hpp"
#include "compiler/expr/expr.hpp"

namespace lacuna {

struct MaskParts {
  Expr of_distance;              ///< empty: there is no such condition
  std::vector<KeyRange> ranges;  ///< none: the mask is not of this kind
};

/// `mask`: of Site::kMask; all keys are one range.
MaskParts split_mask(const Expr& mask);

}  // namespace lacuna
