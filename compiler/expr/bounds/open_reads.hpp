// What of a mask interval analysis (bounds/interval.hpp) has no bounds for, or loose ones.
//
// It has none for tensors whose elements differ from token to token, unless they rise along the
// tokens. A condition on such an element may hold or not in any tile, so that only the mask's other
// conditions exclude tiles. Loose are those of remainders, bits and hashes of tokens: a tile that
// is longer than a row of an image has all columns, and which of them go with which row bounds do
// not say. Loose, too, are comparisons of numbers that might overflow, of logarithms and
// exponentials, which are approximate, and of a token with itself: of q - k < q // 2 bounds let the
// first q be another than the second.
#pragma once

#include <string>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Names of the parameters that a mask reads so, each once; none: bounds settle all they can.
std::vector<std::string> open_reads(const Expr& mask);

/// The first such remainder or comparison of a mask, as text; "": none.
std::string loose_part(const Expr& mask);

}  // namespace lacuna
