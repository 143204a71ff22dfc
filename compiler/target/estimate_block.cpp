#include "compiler/target/estimate_block.hpp"

#include <algorithm>
#include <numeric>

#include "compiler/spec/summary.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {
namespace {

/// Narrower tiles are columns: their rows are long, and two of them at once have to do.
constexpr int kFinestPooledTile = 32;
constexpr int kPooledRows = 8, kPooledColumnRows = 2;

int whole_mma(int rows) { return (rows + kWarpRows - 1) / kWarpRows * kWarpRows; }

/// Behind the stages: what is known of the rows, and barriers. Of means the rows stay, and only
/// columns come in stages.
constexpr int kCellTailBytes = 2048, kCellMeanTailBytes = 6144;
constexpr int kTokenPairControlBytes = 16384, kSoftmaxControlBytes = 5120,
              kExactControlBytes = 2048;

std::string number_text(int number) { return std::to_string(number); }
/// With 256 digits of each warp, by which it puts tiles in order.
int softmax_control_bytes(const Estimate& estimate) {
  return kSoftmaxControlBytes + estimate.tile_q / kWarpRows * 1024;
}
int cell_depth(int head_dim) { return std::gcd(head_dim, kCellDepth); }
bool has_cell_means(const Estimate& estimate) {
  return estimate.rows.kind == SummaryKind::kCellMean;
}

}  // namespace

int estimate_rows(const Estimate& estimate) {
  switch (estimate.rows.kind) {
    case SummaryKind::kMean:
      // Bounds are twice as long as what they are compared with, which lies in registers.
      return estimate.tile_k < kFinestPooledTile || estimate.columns.kind == SummaryKind::kMinMax
                 ? kPooledColumnRows
                 : kPooledRows;
    case SummaryKind::kCellMean:
    case SummaryKind::kAntidiagonal:
      return kCellRows;
    default:  // tokens
      return whole_mma(rows_of_tile(estimate.rows, estimate.tile_q));
  }
}

int estimate_block_smem_bytes(const Estimate& estimate, int rows, int head_dim) {
  if (estimate.is_indexed()) return estimate_smem_bytes(rows, estimate.index_dim);
  return estimate_smem_bytes(rows, head_dim);
}

std::string estimate_block_smem_formula(const Estimate& estimate, int rows, int head_dim) {
  if (estimate.is_indexed()) return estimate_smem_formula(rows, estimate.index_dim);
  return estimate_smem_formula(rows, head_dim);
}

int cell_smem_bytes(const Estimate& estimate, bool by_wgmma, int head_dim) {
  const bool are_means = has_cell_means(estimate);
  return cell_tile_bytes(by_wgmma, are_means, head_dim, cell_depth(head_dim)) +
         (are_means ? kCellMeanTailBytes : kCellTailBytes);
}

std::string cell_smem_formula(const Estimate& estimate, bool by_wgmma, int head_dim) {
  const bool are_means = has_cell_means(estimate);
  const std::string rows = number_text(kCellRows), depth = number_text(cell_depth(head_dim));
  const std::string stages = number_text(cell_stages(by_wgmma, are_means)) + " stages * ";
  const std::string columns = number_text(cell_columns(by_wgmma, are_means));
  if (are_means)
    return "(" + rows + " * " + number_text(head_dim) + " + " + stages + columns + " * " + depth +
           ") * 2 + " + number_text(kCellMeanTailBytes);
  return stages + "(" + rows + " + " + columns + ") * " + depth + " * 2 + " +
         number_text(kCellTailBytes);
}

int token_pair_smem_bytes(int head_dim) {
  return token_pair_tile_bytes(head_dim) + kTokenPairControlBytes;
}

std::string token_pair_smem_formula(int head_dim) {
  return "(" + number_text(kTokenPairStages) + " * " + number_text(kTokenPairStepKeys) + " + " +
         number_text(kTokenPairRows) + ") * " + number_text(head_dim) + " + " +
         number_text(kTokenPairControlBytes);
}

int token_softmax_smem_bytes(const Estimate& estimate, int head_dim) {
  return token_softmax_tile_bytes(estimate.tile_q, head_dim) + softmax_control_bytes(estimate);
}

std::string token_softmax_smem_formula(const Estimate& estimate, int head_dim) {
  return "(" + number_text(estimate.tile_q) + " + " + number_text(softmax_stages(estimate.tile_q)) +
         " stages * " + number_text(kSoftmaxStepKeys) + ") * " + number_text(head_dim) + " + " +
         number_text(softmax_control_bytes(estimate));
}

int token_softmax_consumers(const Estimate& estimate) {
  return estimate.tile_q / kWarpgroupRows * kWarpgroupThreads;
}

int token_softmax_weights(const Estimate& estimate) {
  const int places = estimate.tile_q > kWarpgroupRows ? 2 : 1;
  return places * std::max(estimate.tile_k / kSoftmaxPartKeys, 1) * estimate.tile_q;
}

int estimate_exact_smem_bytes(int head_dim) {
  return exact_tile_bytes(head_dim) + kExactControlBytes;
}

std::string estimate_exact_smem_formula(int head_dim) {
  return "(" + number_text(kExactStages) + " * " + number_text(kExactStepKeys) + " + " +
         number_text(kTokenPairRows) + ") * " + number_text(head_dim) + " * 2 + " +
         number_text(kExactControlBytes);
}

int estimate_cell_tiles(const Estimate& estimate) {
  return kCellRows / (estimate.tile_q / estimate.rows.count);
}

}  // namespace lacuna
