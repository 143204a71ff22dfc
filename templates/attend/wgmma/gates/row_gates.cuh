// A gate where the rows of a work tile are those of several heads (takes_few_queries): each head
// decides for itself, and what is left out for one is computed for another. So a tile that counts
// for some heads is multiplied for all, and the rows of the others hide it, as under a mask.
//
// A head's queries are an aligned group of up to 16 rows, so those of one warp: group_queries is a
// power of two here. Lanes of the group tell one another their maxima by shuffles; no warp waits
// for another (consumers/gate_rows.cuh).
#pragma once

#include "arch/warp.cuh"
#include "base/math.cuh"
#include "pipeline/batch_layout.cuh"

namespace lacuna {

/// What a lane keeps of its two rows.
template <class Config, bool kExist = gates_rows<Config>()>
struct RowGates {
  __device__ __forceinline__ void begin_row(bool) {}
};
template <class Config>
struct RowGates<Config, true> {
  float running_max[2];  ///< in score units, of tiles that count
  bool is_fresh[2];      ///< no tile of the row's head was visited: the first one always counts
  u32 hidden;            ///< of the step under way, bit 2 * tile + row: left out by the gate

  /// `is_first`: the item has the first tiles of its row.
  __device__ __forceinline__ void begin_row(bool is_first) {
#pragma unroll
    for (int r = 0; r < 2; ++r) running_max[r] = -kInfinity, is_fresh[r] = is_first;
    hidden = 0;
  }
};

/// Each row's x becomes the largest of all rows of its head. `rows`: of a head, side by side in the
/// warp.
__device__ __forceinline__ void merge_rows_of_head(float (&x)[2], int rows) {
  if (rows == kWarpRows) x[0] = x[1] = fmaxf(x[0], x[1]);
  for (int lanes = 4; lanes < 4 * smaller(rows, kWarpRows / 2); lanes *= 2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) x[r] = fmaxf(x[r], __shfl_xor_sync(kAllLanes, x[r], lanes));
  }
}

}  // namespace lacuna
