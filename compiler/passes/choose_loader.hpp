// Whether keys and values are loaded in order or gathered.
#pragma once

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

/// The first of the user's loaders that goes with the rest of the spec; a conflict (E0205) if none
/// does.
Loader choose_loader(const SpecDocument& document, Diagnostics& diagnostics);

}  // namespace lacuna
