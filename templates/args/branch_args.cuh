// What the argument block has besides in a spec with branches (attend/merge_branch.cuh): the sums
// that one branch hands on to the next, contiguous. Of a batch of sequences n_q is the most that
// one may have, and each sequence has a sum_lse of its own: [n_b, 2, n_h, n_q].
#pragma once

namespace lacuna {

struct BranchArgs {
  float* sum_o;    ///< [n_b, n_h, n_q, d]
  float* sum_lse;  ///< [2, n_b, n_h, n_q] of an even and an odd number of branches; null: weights
};
static_assert(sizeof(BranchArgs) == 16, "the host writes this layout");

}  // namespace lacuna
