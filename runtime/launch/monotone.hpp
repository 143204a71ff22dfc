// Checks parameters that promise never to fall. The bounds of tiles rely on the promise: if it is
// broken, keys that a row sees are left out.
#pragma once

#include <optional>
#include <string>

#include "compiler/expr/evaluate.hpp"

namespace lacuna {

/// "value 3 at [0, 17] is not at least 9, the one before it" of the first element that falls along
/// the last dimension, NaN included; nothing if none does. The elements lie in memory that the host
/// reads.
std::optional<std::string> first_fall(const ParamSymbol& symbol, const ParamView& view);

}  // namespace lacuna
