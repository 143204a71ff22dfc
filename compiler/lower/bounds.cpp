// summarise, where it makes bounds: the smallest and the largest of each element of a tile's keys.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/token_ops.hpp"

namespace lacuna {

Kernels lower_bounds(const Plan& plan) {
  const Summarise* bounds = token_ops(plan.program, Tensor::kK).bounds;
  if (bounds == nullptr) return {};
  const std::string tiles = tiles_of(Tensor::kK, bounds->tile);
  return {{.name = "bound_k",
           .because = "a tile's keys are compared by the bounds of their elements",
           .header = "prepare/bounds.cuh",
           .function = "bound_keys",
           .config = {predictor_tile_k(bounds->tile)},
           .grid = {ceil_divide(blocks_over(Tensor::kK, bounds->tile), kBlockWarps),
                    "a warp for each key tile of the predictor"},
           .threads = block_threads(),
           .smem_bytes = no_smem(),
           .operands = {"k"},
           .slots = {{"k_summary",
                      units(all_heads(Tensor::kK), tiles, 2 * plan.program.head_dim * kWordBytes)}},
           .decides = true}};
}

}  // namespace lacuna
