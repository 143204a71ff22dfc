// A place in a ring of slots that two roles walk along.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// A slot and the parity of its phase. One counter holds both; no block takes enough steps for it
/// to wrap around.
template <int kSlots>
struct RingPosition {
  u32 count = 0;

  __device__ __forceinline__ u32 slot() const { return count % kSlots; }
  __device__ __forceinline__ u32 phase() const { return count / kSlots % 2; }
  __device__ __forceinline__ void advance() { ++count; }
  __device__ __forceinline__ RingPosition before() const { return {count - 1}; }
};

/// The same in a ring of which a launch uses the first `slots`. `inverse` is 2^31 / slots, rounded
/// up: the quotient is right for every count below 2^30.
struct LaunchRingPosition {
  u32 count, slots, inverse;

  __device__ __forceinline__ u32 turns() const { return __umulhi(count + count, inverse); }
  __device__ __forceinline__ u32 slot() const { return count - turns() * slots; }
  __device__ __forceinline__ u32 phase() const { return turns() % 2; }
  __device__ __forceinline__ void advance() { ++count; }
};

}  // namespace lacuna
