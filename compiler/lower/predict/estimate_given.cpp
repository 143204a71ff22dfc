// An estimate whose scores the spec says itself: a formula of each tile, in place of a comparison.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

/// Rows of templates/select/given/given.cuh that are longer than this holds lie in the workspace.
constexpr int kGivenBytes = 24 << 10;

}  // namespace

Kernels given_kernels(const EstimateParts& parts) {
  Kernel kernel{
      .name = "estimate",
      .because = "the scores of tiles are given, and compared with each other",
      .header = "select/given/given.cuh",
      .function = "predict_given",
      .config = {predictor_tile_q(parts.estimate.tile_q), predictor_tile_k(parts.estimate.tile_k)},
      .grid = striding_grid(parts, 1),
      .threads = block_threads(),
      .smem_bytes = {kGivenBytes, Origin::kDefault, "longer rows lie in the workspace"}};
  add_estimate_config(parts, kernel.config);
  add_similarity_operands(parts, kernel);
  kernel.slots = {{"scores", units("(" + kernel.grid.expr + ")", keep_k_tiles(parts.select),
                                   row_planes(parts.keep.orders_tiles()) * kWordBytes)},
                  kept_slot(parts.plan, parts.select)};
  return {kernel};
}

}  // namespace lacuna
