// Whether a spec is one for what the caller asks for: head dimension, element type.
#pragma once

#include "compiler/ir/program.hpp"

namespace lacuna {

/// Adds diagnostics if the spec does not allow it, or needs more.
void check_request(const SpecDocument& document, const BuildOptions& options,
                   Diagnostics& diagnostics);

}  // namespace lacuna
