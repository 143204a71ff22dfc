// Checks what the caller asks for against what the spec admits, before a Program is made of both.
#pragma once

#include "compiler/ir/build_options.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

/// Elements of a row of v and o: the caller's, the spec's first, or those of q and k.
int head_dim_v(const VariantSpec& spec, const BuildOptions& options);

/// Elements of a row of q and k as the program has them: the caller's, or those of a branch.
int width_of(const VariantSpec& spec, const BuildOptions& options);

/// An error for each of head dims, dtype, bands of the head dim, and what branches do not go with.
void check_request(const SpecDocument& document, const BuildOptions& options,
                   Diagnostics& diagnostics);

}  // namespace lacuna
