// A mask, split into ranges of keys for each row (key_ranges.hpp) and conditions that depend on the
// distance q - k alone (along_diagonal.hpp), on the key alone or on the query alone, joined by and,
// or and not. A kernel evaluates a condition
// once for each distance, key or query of a warp. A row sees the keys that both its ranges and the
// conditions let through.
//
//   k <= q and q - k < window                       ranges alone
//   k <= q and (q - k) % 4 == 0                     one condition on the distance
//   k >= start[q] and keep[q - k] > 0               a range and a condition on the distance
//   k <= q and (q - k < 64 or k % 64 == 0)          a range, and conditions on distance and key
//   q % width == k % width                          none of these: each pair is asked
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/expr/bounds/key_ranges.hpp"
#include "compiler/expr/expr.hpp"

namespace lacuna {

/// What a condition depends on, besides heads, batch entries and lengths.
enum class MaskSource : std::uint8_t { kDistance, kKey, kQuery };
inline constexpr int kMaskSources = 3;

/// Of each source. What a row keeps of them has to fit registers.
inline constexpr std::size_t kMostConditions = 2;

/// A condition, or what joins those before it.
struct MaskTerm {
  ExprOp op = ExprOp::kLiteral;  ///< kAnd, kOr, kNot; else it is a condition:
  MaskSource source = MaskSource::kDistance;
  int left = 0, right = 0;  ///< of an operator: places of terms; of a condition: left is its number
};

struct MaskParts {
  std::vector<KeyRange> ranges;  ///< none: the mask is not of this kind
  std::vector<Expr> conditions[kMaskSources];
  std::vector<MaskTerm> terms;  ///< the last is all of them; none: ranges are all there is

  const std::vector<Expr>& of(MaskSource source) const {
    return conditions[static_cast<std::size_t>(source)];
  }
  /// Do the ranges leave out no key?
  bool ranges_are_all() const;
  /// Is the mask one condition on the distance?
  bool is_of_distance() const {
    return ranges_are_all() && terms.size() == 1 && terms[0].source == MaskSource::kDistance;
  }
};

/// `mask`: of Site::kMask; all keys are one range.
MaskParts split_mask(const Expr& mask);

}  // namespace lacuna
