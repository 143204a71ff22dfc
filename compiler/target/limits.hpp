// What one block of the mma family of `attend` needs of an SM, as formulas over its tiles.
//
// The shared-memory formula is that of templates/kernel/attend_shape.cuh (the generated kernel
// asserts it); the register formula is an estimate.
#pragma once

#include <string>

#include "compiler/target/target.hpp"

namespace lacuna {

inline constexpr int kWarpRows = 16;  ///< query rows of a warp: those of one mma
inline constexpr int kWarpThreads = 32;

/// What the budget of a block depends on; elements have 2 bytes.
struct TileShape {
  int tile_q = 0, tile_k = 0, stages = 0, head_dim = 0;
  bool votes = false;             ///< a gate of scope tile: warps exchange their statistics
  bool values_on_demand = false;  ///< the gate skips v_load: V is never loaded ahead
  int warps() const { return tile_q / kWarpRows; }
  int threads() const { return warps() * kWarpThreads; }
};

/// The query tile, a K tile for each stage, as many V tiles (two if they are loaded on demand), and
/// the warps' votes. Tiles are swizzled: nothing is padding.
int smem_bytes(const TileShape& shape);
/// The formula with its numbers: "(128 + 64 * 4) * 128 * 2 + 128".
std::string smem_formula(const TileShape& shape);

/// The least registers of a thread that do not spill: accumulators of O and S, P and Q as mma
/// operands, and everything else. ptxas takes more where it can.
int registers_estimate(const TileShape& shape);
/// Most registers a thread may have if the block is to fit one SM.
int registers_limit(const TileShape& shape, const Target& target);

struct Occupancy {
  int blocks = 0;
  std::string limited_by;  ///< "shared memory", "registers", "threads" or "blocks"
};
Occupancy occupancy(const TileShape& shape, const Target& target);

}  // namespace lacuna
