// Which head dimensions a target has kernels for.
#pragma once

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/target/target.hpp"

namespace lacuna {

/// Refuses (E0403) what the target has no kernels for, with the nearest head dimensions that it
/// has. `field`: "head_dim" or "head_dim_v".
void check_head_dim(const SpecDocument& document, const char* field, int head_dim,
                    const Target& target, Diagnostics& diagnostics);

/// Refuses (E0403) a branch's band that ends behind the caller's head, and bands of an estimate
/// that end behind the rows that it compares, which are `width` elements.
void check_bands(const SpecDocument& document, int head_dim, int width, Diagnostics& diagnostics);

}  // namespace lacuna
