// What the argument block has besides where work tiles are split (pipeline/split_kv.cuh): where
// items leave their partial results, contiguous.
#pragma once

namespace lacuna {

struct SplitArgs {
  float* partial_o;    ///< [share, n_b, n_h, n_q, d] divided by its own denominator
  float* partial_lse;  ///< [share, n_b, n_h, n_q]
};
static_assert(sizeof(SplitArgs) == 16, "the host writes this layout");

}  // namespace lacuna
