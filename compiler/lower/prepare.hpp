// How many tokens a block of the prepare kernel takes.
#pragma once

#include "compiler/lower/token_ops.hpp"
#include "compiler/target/plan.hpp"

namespace lacuna {

/// As many as its registers hold well, and at least the largest tile it works on, which like all
/// others divides it.
Chosen<int> prepare_tokens(const TokenOps& ops, int head_dim);

}  // namespace lacuna
