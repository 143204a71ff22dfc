// What one block of the mma family of `attend` needs of an SM, as formulas over its tiles.
//
// The shared-memory formula is that of templates/shared/attend_block.cuh, which the kernel
// includes, too; the register formula is an estimate.
#pragma once

#include <string>

#include "compiler/ir/build_options.hpp"
#include "compiler/target/target.hpp"
#include "templates/shared/attend_block.cuh"
#include "templates/shared/prepare_block.cuh"

namespace lacuna {

/// What the budget of a block depends on.
struct TileShape {
  int tile_q = 0, tile_k = 0, stages = 0, head_dim = 0;
  int head_dim_v = 0;             ///< of V and the output, read by value_dim
  bool votes = false;             ///< a gate of scope tile: warps exchange their statistics
  bool values_on_demand = false;  ///< the gate skips v_load: V is never loaded ahead
  int qk_bits = 16, v_bits = 16;  ///< of the elements of Q and K, of V
  bool e4m3_rows = false;  ///< K and V are loaded as codes; two tiles each of 16 bits besides
  bool v_of_k = false;     ///< tiles of K serve as those of V
  bool has_8_bits() const { return qk_bits == 8 || v_bits == 8; }
  int row_warps() const { return tile_q / kWarpRows; }  ///< what a spec calls tile.warps
  int warps() const { return row_warps() * column_parts(value_dim(*this)); }
  int threads() const { return warps() * kWarpThreads; }
};

/// The query tile (with 2 bytes for each element, as the output is staged there), a K tile for each
/// stage, as many V tiles (two if they are loaded on demand), and the warps' votes. Tiles are
/// swizzled: nothing is padding.
int smem_bytes(const TileShape& shape);
/// The formula with its numbers: "(128 queries + 4 tiles * 64 keys) * 128 elements * 2 bytes + 128
/// of votes"; with 8-bit elements "(128 queries * 2 bytes + 64 keys * (2 * 1 + 2 * 2)) * 128
/// elements".
std::string smem_formula(const TileShape& shape);

/// The block of an estimate that compares `rows` queries with 128 keys at a time.
int estimate_smem_bytes(int rows, int head_dim);
std::string estimate_smem_formula(int rows, int head_dim);

/// The least registers of a thread that do not spill: accumulators of O and S, P and Q as mma
/// operands, and everything else. ptxas takes more where it can.
int registers_estimate(const TileShape& shape);
/// The most registers that a thread may have if `threads` of them are to fit on one SM.
int most_registers(int threads, const Target& target);
/// The same of a block.
int registers_limit(const TileShape& shape, const Target& target);

struct Occupancy {
  int blocks = 0;
  /// "shared memory", "registers", "threads", "blocks", or those of them that allow equally few:
  /// "shared memory and registers".
  std::string limited_by;
};
Occupancy occupancy(const TileShape& shape, const Target& target);

}  // namespace lacuna
