// Register blocking and the panel layouts that follow from it.
//
// A matrix B [depth][columns] of a product is stored as panels of `vectors * width` columns, each
// contiguous [depth][panel columns], so that the innermost loop streams memory. Keys are the
// columns of Q K^T, head dimensions those of P V.
#pragma once

#include <compare>
#include <cstdint>

namespace lacuna::host {

/// A block of the product held in registers: rows x (vectors * width) accumulators.
struct Block {
  int rows = 0, vectors = 0, width = 0;
  int columns() const { return vectors * width; }
  auto operator<=>(const Block&) const = default;
};

struct Panels {
  Block block;
  int count = 0;  ///< panels
  int depth = 0;  ///< capacity of the reduction
  int padded_columns() const { return count * block.columns(); }
  std::int64_t panel_floats() const { return std::int64_t{depth} * block.columns(); }
  std::int64_t floats() const { return count * panel_floats(); }
  auto operator<=>(const Panels&) const = default;
};

/// The blocking that wastes the fewest padded columns, widest first.
/// `registers`: vector registers of the machine.
Panels choose_panels(int columns, int depth, int width, int registers);

/// Everything about one compiled attend op that generator and driver must agree on.
struct Shape {
  int head_dim = 0, head_dim_v = 0, tile_q = 0, tile_k = 0;
  Panels keys;    ///< columns: keys of a tile; depth: head_dim
  Panels values;  ///< columns: head_dim_v; depth: keys of a tile
  auto operator<=>(const Shape&) const = default;
};

}  // namespace lacuna::host
