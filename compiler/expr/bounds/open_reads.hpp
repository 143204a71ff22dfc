// Which tensors of a mask interval analysis (bounds/interval.hpp) has no bounds for: those whose
// elements differ from token to token, unless they rise along the tokens. A condition on such an
// element may hold or not in any tile, so that only the mask's other conditions exclude tiles.
#pragma once

#include <string>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Names of the parameters that a mask reads so, each once; none: bounds settle all they can.
std::vector<std::string> open_reads(const Expr& mask);

}  // namespace lacuna
