// What one block of the wgmma family of `attend` needs of an SM, as formulas over its tiles: one
// producer warpgroup that loads by TMA, and consumer warpgroups of 64 query rows each.
//
// The shared-memory formula is that of templates/attend/wgmma/attend_wgmma.cuh, whose kernel
// asserts it.
#pragma once

#include <string>

#include "compiler/ir/program.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {

inline constexpr int kWarpgroupRows = 64;  ///< query rows of a warpgroup: those of one wgmma
inline constexpr int kWarpgroupThreads = 128;
/// Elements of a panel: 128 bytes, the widest row that TMA swizzles.
inline constexpr int kPanelElements = 64;
/// Tokens of a panel of e4m3 columns.
inline constexpr int kColumnPanelTokens = 64;

/// Elements of a row in shared memory, where a row takes whole panels. The copy engine fills the
/// rest of the last panel with zeros.
constexpr int padded_dim(int head_dim) {
  return (head_dim + kPanelElements - 1) / kPanelElements * kPanelElements;
}

/// What the budget of a block depends on. `tile_k` is that of lists, masks and gates; a step of the
/// main loop takes step_keys / tile_k of them.
struct WgmmaShape {
  int tile_q = 0, tile_k = 0, stages = 0, head_dim = 0;
  int value_stages = 0;      ///< of the values' ring; `stages` are those of the keys'
  int query_buffers = 0;     ///< 2: the next work tile is loaded while this one is computed
  int work_tiles = 1;        ///< work tiles that a block takes together; if 2, a warpgroup each
  bool has_terms = false;    ///< a score hook, biases, a busy gate, small tiles: taking registers
  int most_step_keys = 128;  ///< of any shape
  bool gathers = false;      ///< columns, by a producer that itself copies
  int qk_bits = 16, v_bits = 16;
  bool has_lists = false;  ///< of key tiles
  bool has_gate = false;
  bool splits_kv = false;    ///< results are partial: in f32, to addresses that take registers
  bool packs_heads = false;  ///< of sequences: rows are those of all heads of a KV head
  int head_dim_v = 0;        ///< of V and the output, read by value_dim
  int block_rows() const { return tile_q * work_tiles; }                         ///< queries
  int warpgroups() const { return block_rows() / kWarpgroupRows; }               ///< that compute
  int warps() const { return warpgroups() * kWarpgroupThreads / kWarpThreads; }  ///< that compute
  int threads() const { return (warpgroups() + 1) * kWarpgroupThreads; }
  /// Keys whose scores fit a consumer's registers beside its rows of the output, and whose rows
  /// leave shared memory for two stages.
  int step_keys() const {
    const bool fits = value_dim(*this) <= 2 * kPanelElements && head_dim <= 3 * kPanelElements;
    return fits && !has_terms && most_step_keys >= 128 ? 128 : 64;
  }
};

/// Barriers and votes, query tiles, and K and V of their stages.
int smem_bytes(const WgmmaShape& shape);
/// The formula with its numbers: "1024 + (128 * 2 + (2 + 2) * 128) * 128 * 2", or of operands of 8
/// bits "1024 + (128 * 2 * 2 + 4 * 128 * (1 + 1)) * 128". The queries' place is the output's, too.
std::string smem_formula(const WgmmaShape& shape);

/// Registers of a thread, as setmaxnreg deals them out.
struct WgmmaRegisters {
  int consumer = 0, producer = 0;
};
WgmmaRegisters registers_of(const WgmmaShape& shape);

}  // namespace lacuna
