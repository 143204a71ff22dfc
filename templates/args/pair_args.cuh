// What the argument block has besides where pairs of tiles are asked before attend
// (select/pairs.cuh).
#pragma once

namespace lacuna {

struct PairArgs {
  /// [masks, q_tiles, 2, words], bit j % 32 of word j / 32: some pair of tile j is visible; all of
  /// its kTileK keys are to every query. `masks`: pipeline/tile_classes.cuh.
  unsigned* tile_classes;
};
static_assert(sizeof(PairArgs) == 8, "the host writes this layout");

}  // namespace lacuna
