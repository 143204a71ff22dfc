// Which tiles have a visible pair, where bounds of the mask say too little: Select::pairs and
// Estimate::pairs (ir/program.hpp).
#pragma once

#include <span>

#include "compiler/expr/evaluate.hpp"
#include "runtime/cpu/ops/array.hpp"

namespace lacuna::predict {

/// Does one of the queries see one of the keys? Both ends count. `bindings` know all that the mask
/// reads but q and k, which they are told.
bool has_visible_pair(const Expr& mask, int q0, int q1, int k0, int k1, Bindings& bindings);

/// Bits of the predictor's tiles that have a visible pair, u32 [batch or 1, heads or 1, q_tiles,
/// words]: 1 where the mask is the same for all.
Array visible_tiles(const Select& op, const HostArgs& args, std::span<const ParamView> params);

/// Is tile j of row i one of those?
bool is_visible(const Array& visible, HeadIndex head, int i, int j);

}  // namespace lacuna::predict
