// DLPack tensors and named parameters, checked against what a kernel accepts.
//
// bind_launch runs on every launch: without an error it allocates nothing, takes no lock and calls
// no driver. All mismatches are reported at once, each as
// `kernel bsfa, argument k: dtype expected bf16, got f16`.
#pragma once

#include "compiler/diag/diagnostic.hpp"
#include "lacuna/lacuna.h"
#include "runtime/base/arguments.hpp"

namespace lacuna {

/// False with diagnostics if an argument does not fit.
bool bind_launch(const LaunchContract& contract, const lacuna_launch_args& args, BoundLaunch& bound,
                 Diagnostics& diagnostics);

/// False with diagnostics unless all extents are non-negative, heads is a multiple of heads_kv, the
/// grid fits 31 bits and permuted tokens are as many queries as keys.
bool check_shape(const LaunchContract& contract, const LaunchShape& shape,
                 Diagnostics& diagnostics);

}  // namespace lacuna
