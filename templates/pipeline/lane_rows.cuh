// The queries of a lane's two accumulator rows, for the formulas that ask about them.
#pragma once

#include "base/ints.cuh"
#include "base/pin.cuh"

namespace lacuna {

/// Queries q and q + 8 of one head.
struct LaneRows {
  int first, head;

  __device__ __forceinline__ int q(int r) const { return first + 8 * r; }
  __device__ __forceinline__ int h(int) const { return head; }
  __device__ __forceinline__ bool exists(int r, int n_q) const { return q(r) < n_q; }
  /// Makes the compiler compute what depends on the queries again behind this, in place of keeping
  /// it in registers.
  __device__ __forceinline__ void pin() { lacuna::pin(first); }
  static constexpr bool kAreNeighbours = true;
};

/// Of a work tile whose rows are those of several heads (pipeline/sequence_tile.cuh): two queries,
/// each of a head of its own. A row that is of no query takes the place of the last.
struct PackedRows {
  int queries[2], heads[2];
  bool are_rows[2];

  __device__ __forceinline__ int q(int r) const { return queries[r]; }
  __device__ __forceinline__ int h(int r) const { return heads[r]; }
  __device__ __forceinline__ bool exists(int r, int) const { return are_rows[r]; }
  __device__ __forceinline__ void pin() {
    lacuna::pin(queries[0]);
    lacuna::pin(queries[1]);
  }
  static constexpr bool kAreNeighbours = false;
};

}  // namespace lacuna
