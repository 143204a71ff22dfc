// A block of `attend`, as the host plans it and the device lays it out: units, shared memory and
// registers. Plain C++17, which compiler/ and the kernels both include; numbers stand here once.
#pragma once

namespace lacuna {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpRows = 16;  ///< query rows of a warp: those of one mma
inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWarpgroupRows = 64;  ///< query rows of a warpgroup: those of one wgmma
/// Elements of a panel: 128 bytes, the widest row that TMA swizzles.
inline constexpr int kPanelElements = 64;
/// Tokens of a panel of e4m3 columns.
inline constexpr int kColumnPanelTokens = 64;

/// Elements of a row in shared memory, where a row takes whole panels. The copy engine fills the
/// rest of the last panel with zeros.
constexpr int padded_dim(int head_dim) {
  return (head_dim + kPanelElements - 1) / kPanelElements * kPanelElements;
}

/// Columns of O that a warp of the mma family has the registers for.
inline constexpr int kWarpColumns = 256;

/// Warps of the mma family that share 16 query rows: each has a part of the columns of V and O, and
/// all of them the same scores.
constexpr int column_parts(int head_dim_v) {
  return (head_dim_v + kWarpColumns - 1) / kWarpColumns;
}

/// Of the mma family, from Q, K and V behind one another: the query tile, in whose place O is put
/// together, so that the wider of both counts; K tiles; V tiles; votes of a gate. Tiles are
/// swizzled: nothing is padding.
struct MmaBlock {
  int tile_q, tile_k, stages;
  int head_dim, head_dim_v;
  int qk_bits, v_bits;
  bool votes;             ///< a gate of scope tile: warps exchange their statistics
  bool values_on_demand;  ///< the gate skips v_load: V is never loaded ahead
  bool e4m3_rows;         ///< K and V are loaded as codes, of which 16-bit tiles are made
  bool v_of_k = false;    ///< tiles of K are read as those of V, too

  constexpr int row_warps() const { return tile_q / kWarpRows; }  ///< of each part of the columns
  constexpr int key_bytes() const { return tile_k * head_dim * qk_bits / 8; }  ///< of a tile
  constexpr int value_bytes() const { return tile_k * head_dim_v * v_bits / 8; }
  /// V trails K by two tiles, or waits for the gate's decision.
  constexpr int value_slots() const { return values_on_demand ? 2 : stages; }
  /// Tiles that products read. Of e4m3 rows one is made while another is read. Where V is a part of
  /// K, a tile is needed for two visits more, until its product with the weights.
  constexpr int key_tiles() const { return e4m3_rows ? 2 : v_of_k ? stages + 2 : stages; }
  constexpr int value_tiles() const { return v_of_k ? 0 : e4m3_rows ? 2 : value_slots(); }

  constexpr int keys_offset() const {
    const int queries = tile_q * head_dim * qk_bits / 8, output = tile_q * head_dim_v * 2;
    return queries > output ? queries : output;
  }
  constexpr int values_offset() const { return keys_offset() + key_tiles() * key_bytes(); }
  constexpr int tiles_end() const { return values_offset() + value_tiles() * value_bytes(); }
  /// Codes of e4m3 have half the bytes of the tiles that are made of them.
  constexpr int codes_bytes() const {
    return e4m3_rows ? stages * key_bytes() / 2 + value_slots() * value_bytes() / 2 : 0;
  }
  constexpr int votes_offset() const { return tiles_end() + codes_bytes(); }
  /// Of statistics of two tiles, 16 bytes for 16 rows.
  constexpr int vote_bytes() const { return votes ? 16 * row_warps() : 0; }
  constexpr int smem_bytes() const { return votes_offset() + vote_bytes(); }
};

/// Codes of e4m3 that a box has of a row: 128 bytes where rows are whole numbers of these.
constexpr int code_panel(int head_dim) { return head_dim % 128 == 0 ? 128 : 64; }
inline constexpr int kMostCodePlaces = 8;
/// Rows of keys or values that have one scale, at least: those of the smallest page.
inline constexpr int kScaleRows = 16;

/// Columns between those that are expanded and those that are multiplied.
inline constexpr int kColumnRingSlots = 4096;
/// Of two work tiles: steps for which the ring holds which keys each work tile keeps, and the most
/// keys of a step.
inline constexpr int kColumnRingSteps = 16, kMostRingStepKeys = 128;
/// The number of each column. For two work tiles also a byte for each column, which says which of
/// them leave it out, and a bit for each key of a step and work tile.
constexpr int column_ring_bytes(int work_tiles) {
  const int numbers = 4 * kColumnRingSlots;
  if (work_tiles == 1) return numbers;
  return numbers + kColumnRingSlots + kColumnRingSteps * work_tiles * kMostRingStepKeys / 8;
}

/// Of the wgmma family: queries, in whose place O is put together, so that the wider of both
/// counts; K; V; codes of e4m3, of which K and V are made; barriers, messages, votes and biases.
struct WgmmaBlock {
  int rows;  ///< queries of all warpgroups
  int query_buffers, stages, value_stages, step_keys;
  int head_dim, head_dim_v;
  int qk_bits, v_bits;
  int ring_bytes;           ///< of columns that are gathered; 0: none are
  bool has_sequence_tiles;  ///< of sequences
  int code_places = 0;  ///< of e4m3 rows: each holds the codes of a step's keys, or of its values
  bool has_column_bias = false;  ///< of int8 keys: a slot of K holds the biases of its keys, too
  bool has_gate = false;

  /// Of a buffer, whose rows are those of O later.
  constexpr int query_bytes() const {
    return rows * padded_dim(head_dim > head_dim_v ? head_dim : head_dim_v) * 2;
  }
  constexpr int keys_offset() const { return query_buffers * query_bytes(); }
  constexpr int values_offset() const {
    return keys_offset() + stages * step_keys * padded_dim(head_dim) * qk_bits / 8;
  }
  constexpr int codes_offset() const {
    return values_offset() + value_stages * step_keys * padded_dim(head_dim_v) * v_bits / 8;
  }
  constexpr int code_place_bytes() const {
    return step_keys * (head_dim > head_dim_v ? head_dim : head_dim_v);
  }
  constexpr int control_offset() const { return codes_offset() + code_places * code_place_bytes(); }
  /// Rows that roles know of at a time. A power of two, because a counter runs through them.
  constexpr int row_slots() const {
    return code_places > 0 || (has_sequence_tiles && stages > 3) ? 16 : 8;
  }
  constexpr int bias_bytes() const { return has_column_bias ? stages * step_keys * 4 : 0; }
  /// Work tiles of sequences are long: beside votes of a gate, or with those of gathered keys, they
  /// take more than a KiB.
  constexpr int control_bytes() const {
    const bool has_more = has_sequence_tiles && (has_gate || ring_bytes > 0);
    const int rows_and_votes = row_slots() / 8 + (has_more ? 1 : 0);
    return rows_and_votes * 1024 + ring_bytes + bias_bytes();
  }
  constexpr int smem_bytes() const { return control_offset() + control_bytes(); }
};

/// Registers of a thread of the wgmma family, as setmaxnreg deals them out, in steps of 8: a
/// multiprocessor has 65536.
struct WgmmaRegisters {
  int consumer, producer;
};
/// What the producer of two consumer warpgroups does besides walking and loading.
struct ProducerWork {
  bool gathers, has_two_lists, has_sequence_tiles;
  bool makes_rows;  ///< of codes
  bool asks_mask;   ///< of each tile, at length: it is no ranges of keys, or it divides
  bool needs_more;  ///< has_two_widths: code of its own for keys and for values
};
/// Do keys and values differ in width, where consumers have registers to spare? Rows of O are short
/// then, or queries are so long that they stay in shared memory. Producers with 40 registers spill
/// there with pages: 16 bytes of a window at 192/128, and 100 to 150 of most specs with codes.
constexpr bool has_two_widths(int head_dim, int head_dim_v) {
  constexpr int kShort = 2 * kPanelElements;
  return head_dim != head_dim_v && (head_dim > kShort || head_dim_v <= kShort);
}
constexpr WgmmaRegisters wgmma_registers(int warpgroups, const ProducerWork& work) {
  if (work.needs_more && work.has_sequence_tiles)
    return work.makes_rows ? WgmmaRegisters{216, 72} : WgmmaRegisters{224, 56};
  const bool asks_mask = work.asks_mask && warpgroups == 2;
  if (work.gathers || work.has_two_lists || work.has_sequence_tiles || work.makes_rows || asks_mask)
    return {232, 40};
  return warpgroups <= 2 ? WgmmaRegisters{240, 24} : WgmmaRegisters{160, 32};
}

/// Places of the votes on single tiles of a gate: warps that do not wait are ahead by fewer.
inline constexpr int kTileVoteSlots = 8;

}  // namespace lacuna
