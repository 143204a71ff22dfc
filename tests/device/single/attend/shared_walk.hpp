// pipeline/two_list_walk.cuh by itself: one warp that writes down the steps of two work tiles.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

struct SharedWalkShape {
  int step_tiles;
  bool has_gate, descending;
};

/// Bits of a SharedTile for each step and place, count of steps; `pair`: of which rows.
struct SharedSteps {
  unsigned* tiles;  ///< [most_steps, step_tiles]
  int* count;
  int most_steps, head, first_row;
};

struct SharedWalkVariant {
  SharedWalkShape shape;
  emulation::Kernel walk;
};

const std::vector<SharedWalkVariant>& shared_walk_variants();
constexpr int kSharedTileKeys = 32;

/// What the bits of a tile say.
struct SharedTileFacts {
  int index;
  unsigned listed, masked;
};
SharedTileFacts facts_of(unsigned bits);

}  // namespace single
