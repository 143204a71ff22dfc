// Scores of few rows, which the kernel that summarises keys makes beside or in place of their
// summaries: templates/select/pooled/row_scores.cuh.
#pragma once

#include "compiler/lower/predict/estimate_kernels.hpp"

namespace lacuna {

/// What the estimate that reads them needs; add_row_scores (lower.hpp) is the other half.
void read_row_scores(const Plan& plan, Kernel& kernel);

/// Of an estimate of tokens: the kernels of which blocks share few rows, made of the estimate's,
/// which then reads what they leave (templates/select/tokens/key_shares.cuh): scores; where blocks
/// share the decision as well, also how many tiles have a score in each bin. None where rows have
/// sums, or where `keep` reads more than p.
Kernels share_keys(const EstimateParts& parts, Kernel& estimate);

/// Numbers of each row and tile of an estimate over cells.
struct CellNumbers {
  bool log_sums, logits;
};
CellNumbers cell_numbers(const EstimateParts& parts);
/// Of an estimate over cells: the kernel of which blocks share the keys of few rows, made of the
/// estimate's, which then goes on from what they leave (templates/select/cells/cell_shares.cuh).
Kernels share_cells(const EstimateParts& parts, Kernel& estimate);

}  // namespace lacuna
