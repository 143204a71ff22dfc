// CUDA C++ for g++: what the device headers and a generated kernel.cu take from the language and
// its built-ins, on top of an emulated block. What is PTX comes from emulation/arch instead.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/device/emulation/box_map.hpp"
#include "tests/device/emulation/byte_matrix.hpp"
#include "tests/device/emulation/calls.hpp"
#include "tests/device/emulation/matrix.hpp"
#include "tests/device/emulation/scalar.hpp"
#include "tests/device/emulation/warp.hpp"
#include "tests/device/emulation/warpgroup_matrix.hpp"

#define __device__
#define __host__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// NVRTC checks the offsets, for which g++ has no constant expression; sizes are checked here too.
#define __INTADDR__(address) ::emulation::AnyOffset()

namespace emulation {

struct AnyOffset {
  constexpr bool operator==(std::size_t) const { return true; }
};

/// threadIdx and gridDim, along x: blocks are one-dimensional, and nobody asks how many rows a grid
/// has.
template <int (*kNumber)()>
struct Index {
  struct {
    operator unsigned() const { return static_cast<unsigned>(kNumber()); }
  } x;
};

struct BlockIndex : Index<block_index> {
  struct {
    operator unsigned() const { return static_cast<unsigned>(block_row()); }
  } y;
};

}  // namespace emulation

inline constexpr emulation::Index<emulation::thread_index> threadIdx;
inline constexpr emulation::BlockIndex blockIdx;
inline constexpr emulation::Index<emulation::block_count> gridDim;

inline void __trap() { emulation::fail("trap"); }
inline void __syncthreads() { emulation::meet_block(false); }
inline int __syncthreads_and(bool vote) { return emulation::meet_block(!vote) == 0; }
inline int __syncthreads_or(bool vote) { return emulation::meet_block(vote) != 0; }
inline int __syncthreads_count(bool vote) { return emulation::meet_block(vote); }

// Warp instructions: of all lanes, for emulation::check_lanes refuses every other mask.
inline void __syncwarp(unsigned lanes = ~0u) {
  emulation::check_lanes(lanes);
  emulation::meet_in_order();
}
template <class T>
T __shfl_sync(unsigned lanes, T value, int lane) {
  emulation::check_lanes(lanes);
  return emulation::exchange(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int difference) {
  return __shfl_sync(lanes, value, emulation::lane_index() ^ difference);
}
/// Lanes without such a neighbour get back their own.
template <class T>
T __shfl_up_sync(unsigned lanes, T value, int distance) {
  const int lane = emulation::lane_index();
  return __shfl_sync(lanes, value, lane < distance ? lane : lane - distance);
}
template <class T>
T __shfl_down_sync(unsigned lanes, T value, int distance) {
  const int lane = emulation::lane_index();
  return __shfl_sync(lanes, value,
                     lane + distance < emulation::kWarpLanes ? lane + distance : lane);
}
inline unsigned __ballot_sync(unsigned lanes, bool vote) {
  emulation::check_lanes(lanes);
  return emulation::ballot(vote);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const auto both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
inline int __any_sync(unsigned lanes, bool vote) { return __ballot_sync(lanes, vote) != 0; }
inline int __all_sync(unsigned lanes, bool vote) { return __ballot_sync(lanes, !vote) == 0; }

/// A thread runs alone from one meeting to the next, so plain arithmetic is atomic.
template <class T>
T atomicAdd(T* target, T value) {
  const emulation::AtomicAccess atomic;
  return std::exchange(*target, *target + value);
}
template <class T>
T atomicOr(T* target, T value) {
  const emulation::AtomicAccess atomic;
  return std::exchange(*target, *target | value);
}
template <class T>
T atomicMax(T* target, T value) {
  const emulation::AtomicAccess atomic;
  return std::exchange(*target, max(*target, value));
}
template <class T>
T atomicMin(T* target, T value) {
  const emulation::AtomicAccess atomic;
  return std::exchange(*target, min(*target, value));
}
