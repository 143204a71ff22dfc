// The argument block of `attend`, filled by the host: plain fields, the same layout on both sides
// (compiler/emit writes it field by field). Strides count elements; rows are contiguous and begin
// at multiples of 16 bytes.
#pragma once

namespace lacuna {

/// [n_b, heads, n, d]
struct TensorArg {
  void* data;
  long long stride_b, stride_h, stride_n;
};

/// [n_b, n_h, n_q], contiguous in n_q.
struct LseArg {
  float* data;
  long long stride_b, stride_h;
};

struct AttendArgs {
  TensorArg q, k, v, o;
  LseArg lse;   ///< data null: not wanted
  int* counts;  ///< [n_b, n_h, q_tiles, 3] visible, visited, gated; null: not wanted
  unsigned char*
      tile_mask;  ///< [n_b, n_h, q_tiles, k_tiles] 0, 1 visited, 2 gated; null: not wanted
  const int*
      list_indices;        ///< [n_b, n_h, q_tiles, list_capacity] ascending; bit 31: needs the mask
  const int* list_counts;  ///< [n_b, n_h, q_tiles]
  /// [n_b * n_h * q_tiles] which work tile a block takes; null: as numbered. Rows that a block
  /// takes together have one number.
  const int* row_order;
  int n_b, n_h, heads_per_kv, n_q, n_k;
  int q_tiles, k_tiles;
  int list_capacity;
  float scale;  ///< softmax scale, > 0
};
static_assert(sizeof(AttendArgs) == 232, "the host writes this layout");

}  // namespace lacuna
