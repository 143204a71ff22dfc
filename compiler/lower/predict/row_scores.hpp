// Scores of few rows, which the kernel that summarises keys makes beside or in place of their
// summaries: templates/select/pooled/row_scores.cuh.
#pragma once

#include "compiler/lower/kernel.hpp"

namespace lacuna {

/// Adds to the kernel that makes predict.k_summary what it needs to make scores of few rows.
/// Nothing where no estimate compares means of queries with these summaries, or two steps do.
void add_row_scores(const Plan& plan, Kernel& kernel);

/// The same for the estimate that reads them.
void read_row_scores(const Plan& plan, Kernel& kernel);

struct EstimateParts;
/// Of an estimate of tokens: the kernel of which blocks share the keys of few rows, made of the
/// estimate's, which then reads what it leaves (templates/select/tokens/key_shares.cuh). None where
/// rows have sums, or nothing but p is not enough.
Kernels share_keys(const EstimateParts& parts, Kernel& estimate);

}  // namespace lacuna
