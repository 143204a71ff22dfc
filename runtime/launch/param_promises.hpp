// Checks what a spec promises of its parameters' elements: that they stay in a range, that they
// never fall. The bounds of tiles rely on it: if it is broken, keys that a row sees are left out.
#pragma once

#include <optional>
#include <string>

#include "compiler/expr/evaluate.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

/// "value 3 at [0, 17] is not at least 9, the one before it" of the first element that falls along
/// the last dimension, NaN included; nothing if none does. The elements lie in memory that the host
/// reads.
std::optional<std::string> first_fall(const ParamSymbol& symbol, const ParamView& view);

/// "expected values in [1, inf], got 0 at [17]" of the first element that is not in the parameter's
/// range, NaN included; nothing if there is none, or the range is that of the type.
std::optional<std::string> first_outside(const ParamSpec& param, const ParamView& view);

/// Either of both, of a parameter that promises it: "is declared monotone, but " + first_fall.
std::optional<std::string> broken_promise(const ParamSpec& param, const ParamView& view);

}  // namespace lacuna
