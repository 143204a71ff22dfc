// One work tile: 128 (say) queries of one head against all keys they visit.
#pragma once

#include <cstdint>

#include "runtime/base/whole_tiles.hpp"
#include "runtime/cpu/llvm/kernel.hpp"
#include "runtime/cpu/llvm/scratch.hpp"

namespace lacuna::host {

/// Which row, and where its packed keys and values lie.
struct WorkTile {
  std::int32_t b = 0, h = 0, i = 0;
  const float* k_tiles = nullptr;  ///< tile after tile, Shape::keys.floats() each
  const float* v_tiles = nullptr;
  const std::uint8_t* v_is_finite = nullptr;  ///< for each tile: 1 if all its values are
};

/// Fills the frame's shape, indices and query bounds.
void place_frame(const Kernel& kernel, const HostArgs& args, const WorkTile& row, Frame& frame);
/// Moves the frame to key tile j.
void move_to_tile(const Kernel& kernel, std::int32_t j, Frame& frame);

// Shared with gathering rows (gather_row.cpp).

/// Loads the row's queries (and their scales) and clears its sums; `scored` rows are padded.
void begin_rows(const Kernel& kernel, const HostArgs& args, const WorkTile& row, int rows,
                int scored, Frame& frame);
/// Adds the product of the tile's weights and values to o, for rows [begin, end).
void add_values(const Kernel& kernel, const Frame& frame, std::int64_t begin, std::int64_t end);
/// Writes o and lse.
void write_rows(const Kernel& kernel, const HostArgs& args, const WorkTile& row, int rows,
                const Frame& frame);
/// Rows of the frame, padded to whole register blocks.
int scored_rows(const Kernel& kernel, const Frame& frame);

/// The row of a kernel that gathers its keys.
void attend_gathered_row(const Kernel& kernel, const HostArgs& args, const WorkTile& row,
                         Scratch& scratch);

/// Computes the row and writes o, lse, counts and tile_mask, as far as they were passed.
void attend_row(const Kernel& kernel, const HostArgs& args, const WorkTile& row, Scratch& scratch);

}  // namespace lacuna::host
