// What one block of the wgmma family of `attend` needs of an SM, as formulas over its tiles: one
// producer warpgroup that loads by TMA, and consumer warpgroups of 64 query rows each.
//
// Shared memory and registers are those of templates/shared/attend_block.cuh, which the kernel
// includes, too.
#pragma once

#include <string>

#include "compiler/ir/program.hpp"
#include "compiler/target/limits.hpp"
#include "templates/shared/attend_block.cuh"

namespace lacuna {

/// What the budget of a block depends on. `tile_k` is that of lists, masks and gates; a step of the
/// main loop takes step_keys / tile_k of them.
struct WgmmaShape {
  int tile_q = 0, tile_k = 0, stages = 0, head_dim = 0;
  int value_stages = 0;          ///< of the values' ring; `stages` are those of the keys'
  int query_buffers = 0;         ///< 2: the next work tile is loaded while this one is computed
  int work_tiles = 1;            ///< work tiles that a block takes together; if 2, a warpgroup each
  bool has_terms = false;        ///< a score hook, a busy gate, small tiles: what takes registers
  bool has_column_bias = false;  ///< of int8 keys
  int most_step_keys = 128;      ///< of any shape
  bool keeps_queries = true;     ///< in registers
  bool gathers = false;          ///< columns, by a producer that itself copies
  int qk_bits = 16, v_bits = 16;
  bool has_lists = false;  ///< of key tiles
  bool has_gate = false;
  bool splits_kv = false;  ///< results are partial: in f32, to addresses that take registers
  bool has_sequence_tiles = false;  ///< work tiles are those of sequences
  bool packs_heads = false;         ///< of these: rows are those of all heads of a KV head
  int head_dim_v = 0;               ///< of V and the output, read by value_dim
  bool asks_mask = false;           ///< who walks asks about each tile, and the questions are long
  bool e4m3_rows = false;           ///< keys and values are loaded as codes, to places of their own
  int code_places = 0;              ///< such places
  int block_rows() const { return tile_q * work_tiles; }                         ///< queries
  int warpgroups() const { return block_rows() / kWarpgroupRows; }               ///< that compute
  int warps() const { return warpgroups() * kWarpgroupThreads / kWarpThreads; }  ///< that compute
  int threads() const { return (warpgroups() + 1) * kWarpgroupThreads; }
  /// Keys whose scores fit a consumer's registers beside its rows of the output, and whose rows
  /// leave shared memory for two stages; where they are made of codes, for places of these, too.
  int step_keys() const {
    const bool leaves_places = !e4m3_rows || head_dim + value_dim(*this) <= 4 * kPanelElements;
    const bool fits = value_dim(*this) <= 2 * kPanelElements && head_dim <= 3 * kPanelElements;
    return fits && leaves_places && !has_terms && most_step_keys >= 128 ? 128 : 64;
  }
};

/// Barriers and votes, query tiles, and K and V of their stages.
int smem_bytes(const WgmmaShape& shape);
/// The formula with its numbers: "1024 of control + (2 * 128 queries + (2 + 2) * 128 keys) * 128
/// elements * 2 bytes", or of operands of 8 bits "1024 of control + (2 * 128 queries * 2 bytes + 4
/// * 128 keys * (1 + 1)) * 128 elements". The queries' place is the output's, too.
std::string smem_formula(const WgmmaShape& shape);

/// Does who walks over a mask of ranges need multiples of parameters, which are divisions, where it
/// asks whether a tile is visible, or full?
bool has_long_bounds(const Attend& attend);

WgmmaRegisters registers_of(const WgmmaShape& shape);

}  // namespace lacuna
