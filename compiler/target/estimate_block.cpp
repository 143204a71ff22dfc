#include "compiler/target/estimate_block.hpp"

#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

/// Narrower tiles are columns: their rows are long, and two of them at once have to do.
constexpr int kFinestPooledTile = 32;
constexpr int kPooledRows = 8, kPooledColumnRows = 2;

int whole_mma(int rows) { return (rows + kWarpRows - 1) / kWarpRows * kWarpRows; }

/// Copies of the rows in shared memory: sums over the tokens of cells lie beside these.
int row_copies(const Estimate& estimate) {
  return estimate.rows.kind == SummaryKind::kAntidiagonal ? 2 : 1;
}

}  // namespace

int estimate_rows(const Estimate& estimate) {
  switch (estimate.rows.kind) {
    case SummaryKind::kMean:
      return estimate.tile_k < kFinestPooledTile ? kPooledColumnRows : kPooledRows;
    case SummaryKind::kTokens:
      return whole_mma(estimate.tile_q);
    case SummaryKind::kAntidiagonal:
      return whole_mma(estimate.tile_q / estimate.rows.count);
    case SummaryKind::kLast:
      return whole_mma(estimate.rows.count);
  }
  return 0;
}

int estimate_block_smem_bytes(const Estimate& estimate, int rows, int head_dim) {
  return estimate_smem_bytes(rows * row_copies(estimate), head_dim);
}

int estimate_pairs_smem_bytes(int head_dim) {
  constexpr int kStages = 4, kStepKeys = 256, kControl = 11264;
  return kStages * kStepKeys * head_dim + kControl;
}

std::string estimate_block_smem_formula(const Estimate& estimate, int rows, int head_dim) {
  return estimate_smem_formula(rows * row_copies(estimate), head_dim);
}

}  // namespace lacuna
