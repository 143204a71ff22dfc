// summarise, where it makes bounds: the smallest and the largest of each element of a tile's keys.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/token_ops.hpp"
#include "templates/shared/prepare_block.cuh"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

Chosen<int> rows_smem(int head_dim) {
  return {bounded_rows_bytes(kFewRows, head_dim), Origin::kDerived,
          std::to_string(kFewRows) + " rows that ask * 2 * " + std::to_string(head_dim) + " * 4"};
}

/// Rows of other widths need the registers of fewer; so does the code of other GPUs.
Chosen<int> blocks_of(const Plan& plan) {
  const int head_dim = plan.program.head_dim;
  const bool is_measured = plan.attend.family.value == AttendFamily::kWgmma;
  if (!is_measured || head_dim <= 96 || head_dim > 128) return one_resident_block();
  return {3, Origin::kDerived, "while some wait for keys others compare"};
}

}  // namespace

Kernels lower_bounds(const Plan& plan) {
  const Summarise* bounds = token_ops(plan.program, Tensor::kK).bounds;
  if (bounds == nullptr) return {};
  const std::string tiles = tiles_of(Tensor::kK, bounds->tile);
  Kernel kernel{
      .name = "bound_k",
      .because = "a tile's keys are compared by the bounds of their elements",
      .header = "prepare/bounds.cuh",
      .function = "bound_keys",
      .config = {predictor_tile_k(bounds->tile)},
      .grid = {blocks_over(Tensor::kK, bounds->tile * kBoundedTiles * kBlockWarps),
               "a warp for each " + std::to_string(kBoundedTiles) + " key tiles of the predictor"},
      .threads = block_threads(),
      .smem_bytes = rows_smem(plan.program.head_dim),
      .resident_blocks = blocks_of(plan),
      .operands = {"k"},
      .slots = {{"k_summary",
                 units(all_heads(Tensor::kK), tiles, 2 * plan.program.head_dim * kWordBytes)}},
      .decides = true};
  add_row_scores(plan, kernel);
  make_kept_summaries(plan, kernel);
  return {kernel};
}

}  // namespace lacuna
