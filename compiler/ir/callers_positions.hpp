// Formulas of tokens that are computed in another order than the caller's. In them q and k are the
// caller's tokens, in the kernels places in the order:
//
//   written   k <= q + n_k - n_q
//   computed  key_order[k] <= query_order[q] + n_k - n_q
//
// The orders are parameters behind the spec's, and both are the launch's tensor `order`. A tile
// knows nothing of what lies in its places: its pairs are asked (passes/ask_pairs.cpp).
#pragma once

#include <cstddef>

#include "compiler/ir/program.hpp"

namespace lacuna {

/// Replaces q and k in all formulas of a program that permutes, and adds the parameters that this
/// needs. Formulas of tiles stay: their places are those of the computation.
void take_callers_positions(Program& program);

/// How many of the parameters are orders: the last ones.
std::size_t order_params(const Program& program);

}  // namespace lacuna
