// CUDA C++ for g++: what the device headers and a generated kernel.cu take from the language and
// its built-ins, on top of an emulated block. What is PTX comes from emulation/arch instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/matrix.hpp"
#include "tests/device/emulation/warp.hpp"

#define __device__
#define __host__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(threads, blocks)
#define __align__(bytes) __attribute__((aligned(bytes)))
// NVRTC checks the offsets, for which g++ has no constant expression; sizes are checked here too.
#define __INTADDR__(address) ::emulation::AnyOffset()

namespace emulation {

struct AnyOffset {
  constexpr bool operator==(std::size_t) const { return true; }
};

struct ThreadIndex {
  struct {
    operator unsigned() const { return static_cast<unsigned>(thread_index()); }
  } x;
};

}  // namespace emulation

inline constexpr emulation::ThreadIndex threadIdx;

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

using std::max;
using std::min;

inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
/// Never contracted to a fused multiply-add (-ffp-contract=off).
inline float __fmul_rn(float a, float b) { return a * b; }

inline void __syncthreads() { emulation::meet_block(true); }
inline int __syncthreads_and(bool vote) { return emulation::meet_block(vote); }
inline void __syncwarp() { emulation::exchange(0, emulation::lane_index()); }

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulation::exchange(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int lanes) {
  return emulation::exchange(value, emulation::lane_index() ^ lanes);
}
inline unsigned __ballot_sync(unsigned, bool vote) { return emulation::ballot(vote); }
inline int __any_sync(unsigned, bool vote) { return emulation::ballot(vote) != 0; }
