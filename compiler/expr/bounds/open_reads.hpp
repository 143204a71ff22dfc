// What interval analysis cannot tell about a mask: elements of tensors that differ from token to
// token, unless they rise along the tokens. Of a tile whose mask reads them it knows no more than
// what the other conditions say (bounds/interval.hpp).
#pragma once

#include <string>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Names of the parameters that a mask reads so, each once; none: bounds settle all they can.
std::vector<std::string> open_reads(const Expr& mask);

}  // namespace lacuna
