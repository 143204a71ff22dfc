// Comparisons of what bends or steps along the keys of a row, as conditions on its straight parts:
//
//   min(a, b) <= c     a <= c or b <= c
//   max(a, b) <= c     a <= c and b <= c
//   abs(a) <= c        a <= c and -a <= c
//   a // 64 <= c       a < 64 * c + 64
//   a // 64 == c       a >= 64 * c and a < 64 * c + 64
//   b - a // 64 < c    a // 64 > b - c
//
// Instead of 64 a parameter that is declared to be at least 1, and is the same for all tokens of a
// head. The multiple of it has to fit i32:
//
//   k // chunk == q // chunk        k >= q - q % chunk and k < q - q % chunk + chunk
#pragma once

#include "compiler/expr/expr.hpp"

namespace lacuna {

struct OpenedMask {
  Expr mask;             ///< the same of each pair; its text is left empty
  bool opens_parameter;  ///< a quotient by a parameter is a condition on multiples of it
};

/// `mask`: of Site::kMask, and not empty.
OpenedMask open_comparisons(const Expr& mask);

}  // namespace lacuna
