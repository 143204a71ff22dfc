// What four consecutive warps do as one on sm_90a: named barriers between them, shares of the
// register file, one elected thread.
#pragma once

#include "arch/warp.cuh"

namespace lacuna {

/// Ids of the hardware's named barriers; 0 is __syncthreads. Each is used for one thing only.
struct NamedBarrier {
  int id;
  int threads;  ///< that take part: those that wait and those that only arrive

  __device__ __forceinline__ void sync() const {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
  }
  __device__ __forceinline__ void arrive() const {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
  }
  /// Is `condition` true in all threads?
  __device__ __forceinline__ bool sync_all(bool condition) const {
    u32 all;
    asm volatile(
        "{\n"
        ".reg .pred in, out;\n"
        "setp.ne.u32 in, %3, 0;\n"
        "bar.red.and.pred out, %1, %2, in;\n"
        "selp.u32 %0, 1, 0, out;\n"
        "}\n"
        : "=r"(all)
        : "r"(id), "r"(threads), "r"(static_cast<u32>(condition))
        : "memory");
    return all != 0;
  }
};

/// The warpgroup gives up, or waits for and takes, registers until each thread has `kRegisters`.
template <int kRegisters>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// True in one thread of the warp, which must be whole here. Unlike a comparison of lane numbers it
/// tells the compiler that just one thread goes on.
__device__ __forceinline__ bool elect_one() {
  u32 elected;
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, one;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}

}  // namespace lacuna
